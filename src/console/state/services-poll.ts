import type { ReadonlySignal } from "@preact/signals";
import { type FleetService, mergeServices } from "../data/services.js";
import { api } from "./api.js";
import { type Polled, usePoll } from "./poll.js";

/** Services of the fleet, and the number of replicas that did not report theirs. */
export interface KnownServices {
  readonly services: readonly FleetService[];
  readonly silentReplicas: number;
}

/** Polls the services of the fleet. */
export function useServices({ everyMs = 1_000 } = {}): ReadonlySignal<Polled<KnownServices>> {
  return usePoll(
    async (signal) => {
      const { services, silentReplicas } = await api.fleet.listServices({}, { signal });
      return { services: mergeServices(services), silentReplicas };
    },
    { everyMs },
  );
}
