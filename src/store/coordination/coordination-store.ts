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
 * What replicas know and decide together, kept where all of them find it. What differs between
 * stores is asked of it: `isShared`, `numbers`, and the records' `recovery`.
 */
export type CoordinationStore = OwnCoordination | SharedCoordination;

/** Coordination that no other process uses. */
export interface OwnCoordination extends CommonCoordination {
  readonly isShared: false;
}

/** Coordination that other processes may use too: only between them is something divided. */
export interface SharedCoordination extends CommonCoordination {
  readonly isShared: true;
  /** Limits of permits, divided. */
  readonly permits: PermitStore;
  /** What replicas ask each other. */
  readonly questions: QuestionStore;
  /** Readings that one of them polls for all. */
  readonly signals: SignalStore;
}

interface CommonCoordination {
  /** What operators have said. */
  readonly records: RecordStore;
  /** Who leads, and the snapshot that the leader makes of what all report. */
  readonly loop: LoopStore;
  /** How many replicas live. */
  readonly members: MemberStore;
  /** Pools of quotas, divided. */
  readonly quotas: QuotaStore;
  /** What a shadow policy counts in all replicas. */
  readonly ledger: LedgerStore;
  /** The lines of waiting rooms. */
  readonly rooms: RoomStore;
  /** What calls have spent, and may spend. */
  readonly budgets: BudgetStore;
  /** What others write there; absent: nobody else can. */
  readonly numbers?: NumberStore;
}
