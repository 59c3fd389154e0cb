import type { ReadonlySignal } from "@preact/signals";
import { type FleetRoom, mergeRooms } from "../data/rooms.js";
import { api } from "./api.js";
import { type Polled, usePoll } from "./poll.js";

/** Waiting rooms of the fleet, and the number of replicas that did not report theirs. */
export interface KnownRooms {
  readonly rooms: readonly FleetRoom[];
  readonly silentReplicas: number;
}

/** Polls the waiting rooms of the fleet. */
export function useRooms(): ReadonlySignal<Polled<KnownRooms>> {
  return usePoll(
    async (signal) => {
      const { rooms, silentReplicas } = await api.rooms.listRooms({}, { signal });
      return { rooms: mergeRooms(rooms), silentReplicas };
    },
    { everyMs: 1_000 },
  );
}
