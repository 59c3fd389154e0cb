import type { LoopStore } from "./loop-store.js";
import type { RecordStore } from "./record-store.js";

/** What replicas know and decide together, kept where all of them find it. */
export interface CoordinationStore {
  /** Whether other processes may use it too. */
  readonly isShared: boolean;
  /** What operators have said. */
  readonly records: RecordStore;
  /** Who leads, and the snapshot that the leader makes of what all report. */
  readonly loop: LoopStore;
}
