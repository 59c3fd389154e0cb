import type { ReadonlySignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { type FleetService, mergeServices, ShedMeter } from "../data/services.js";
import { api } from "./api.js";
import { nowMs } from "./browser.js";
import { type Polled, usePoll } from "./poll.js";

/** Services of the fleet, and how many replicas did not tell theirs. */
export interface KnownServices {
  readonly services: readonly FleetService[];
  readonly silentReplicas: number;
}

/** Polls the services of the fleet. */
export function useServices({ everyMs = 1_000 } = {}): ReadonlySignal<Polled<KnownServices>> {
  const meter = useRef(new ShedMeter());
  return usePoll(
    async (signal) => {
      const { services, silentReplicas } = await api.fleet.listServices({}, { signal });
      const shed = meter.current.measure(services, nowMs());
      return { services: mergeServices(services, shed), silentReplicas };
    },
    { everyMs },
  );
}
