import type { Clock } from "../../core/base/clock.js";
import type { CoordinationStore } from "./coordination-store.js";
import { MemoryLoop } from "./memory-loop.js";
import { MemoryRecords } from "./memory-records.js";

/** Coordination within one process: its one replica, or those of a test. */
export function createMemoryCoordination(clock: Clock): CoordinationStore {
  return { isShared: false, records: new MemoryRecords(clock), loop: new MemoryLoop(clock) };
}
