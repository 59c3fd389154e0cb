import type { Clock } from "../../core/base/clock.js";
import type { CoordinationStore } from "./coordination-store.js";
import { MemoryLedger } from "./memory-ledger.js";
import { MemoryLoop } from "./memory-loop.js";
import { MemoryMembers } from "./memory-members.js";
import { MemoryPermits } from "./memory-permits.js";
import { MemoryQuestions } from "./memory-questions.js";
import { MemoryQuotas } from "./memory-quotas.js";
import { MemoryRecords } from "./memory-records.js";

/** Coordination within one process: its one replica, or those of a test. */
export function createMemoryCoordination(clock: Clock): CoordinationStore {
  return {
    isShared: false,
    records: new MemoryRecords(clock),
    loop: new MemoryLoop(clock),
    members: new MemoryMembers(clock),
    permits: new MemoryPermits(clock),
    quotas: new MemoryQuotas(clock),
    questions: new MemoryQuestions(clock),
    ledger: new MemoryLedger(clock),
  };
}
