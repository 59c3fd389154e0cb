import type { LedgerStore } from "./ledger-store.js";
import type { LoopStore } from "./loop-store.js";
import type { MemberStore } from "./member-store.js";
import type { NumberStore } from "./number-store.js";
import type { PermitStore } from "./permit-store.js";
import type { QuestionStore } from "./question-store.js";
import type { QuotaStore } from "./quota-store.js";
import type { RecordStore } from "./record-store.js";

/**
 * What replicas know and decide together, kept where all of them find it. What differs between
 * stores is asked of it: `isShared`, `numbers`, and the records' `recovery`.
 */
export interface CoordinationStore {
  /** Whether other processes may use it too. */
  readonly isShared: boolean;
  /** What operators have said. */
  readonly records: RecordStore;
  /** Who leads, and the snapshot that the leader makes of what all report. */
  readonly loop: LoopStore;
  /** How many replicas live. */
  readonly members: MemberStore;
  /** Limits of permits, divided. */
  readonly permits: PermitStore;
  /** Pools of quotas, divided. */
  readonly quotas: QuotaStore;
  /** What replicas ask each other. */
  readonly questions: QuestionStore;
  /** What a shadow policy counts in all replicas. */
  readonly ledger: LedgerStore;
  /** What others write there; absent: nobody else can. */
  readonly numbers?: NumberStore;
}
