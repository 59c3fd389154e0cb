import type { BudgetStore } from "./budget-store.js";
import type { LedgerStore } from "./ledger-store.js";
import type { LoopStore } from "./loop-store.js";
import type { MemberStore } from "./member-store.js";
import type { NumberStore } from "./number-store.js";
import type { PermitStore } from "./permit-store.js";
import type { QuestionStore } from "./question-store.js";
import type { QuotaStore } from "./quota-store.js";
import type { RecordStore } from "./record-store.js";
import type { RoomStore } from "./room-store.js";
import type { SignalStore } from "./signal-store.js";

/**
 * State and decisions that replicas share. Callers query how stores differ: `isShared`, `numbers`,
 * and the records' `recovery`.
 */
export type CoordinationStore = OwnCoordination | SharedCoordination;

/** Coordination that no other process uses. */
export interface OwnCoordination extends CommonCoordination {
  readonly isShared: false;
}

/** Coordination that other processes may use too. Only these need to divide permits. */
export interface SharedCoordination extends CommonCoordination {
  readonly isShared: true;
  /** Divides concurrency limits. */
  readonly permits: PermitStore;
  /** Questions that replicas ask each other. */
  readonly questions: QuestionStore;
  /** Readings that one replica polls for all. */
  readonly signals: SignalStore;
}

interface CommonCoordination {
  /** Records that users create, and the audit log. */
  readonly records: RecordStore;
  /** Leader election, replicas' reports, and the snapshot that the leader creates from them. */
  readonly loop: LoopStore;
  /** Counts the live replicas. */
  readonly members: MemberStore;
  /** Divides pools of quotas. */
  readonly quotas: QuotaStore;
  /** Sums of what a shadow policy counts in all replicas. */
  readonly ledger: LedgerStore;
  /** The lines of waiting rooms. */
  readonly rooms: RoomStore;
  /** Accounts of budgets: what calls have spent and reserved. */
  readonly budgets: BudgetStore;
  /** Numbers that other systems write into the store. Absent: no other system can write there. */
  readonly numbers?: NumberStore;
}
