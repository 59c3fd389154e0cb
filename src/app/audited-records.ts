import type { JsonObject } from "../core/json.js";
import type {
  AuditRecord,
  ChangeOutcome,
  RecordChange,
  RecordKind,
  SharedRecord,
  SharedRecords,
} from "../fleet/shared-records.js";
import type { ReadMetric } from "./metric-kinds.js";

/** What became of an entry of the audit log, and of the change that it is about. */
export type AuditOutcome =
  | "written"
  /** Somebody else was faster: nothing was changed or written. */
  | "conflict"
  /** There are as many records as there may be: nothing was changed or written. */
  | "full"
  /** The store failed: nobody knows whether it was written. */
  | "unknown";

/** Entries of the audit log that this replica wanted to write. Plain integers. */
export class AuditCounts {
  readonly #counts = new Map<string, Map<AuditOutcome, number>>();

  /** @param action what it is about, of a closed set: a method of the admin API */
  count(action: string, outcome: AuditOutcome): void {
    const known = this.#counts.get(action) ?? new Map<AuditOutcome, number>();
    this.#counts.set(action, known.set(outcome, (known.get(outcome) ?? 0) + 1));
  }

  /** All that were counted. */
  *entries(): Iterable<{ action: string; outcome: AuditOutcome; count: number }> {
    for (const [action, outcomes] of this.#counts) {
      for (const [outcome, count] of outcomes) yield { action, outcome, count };
    }
  }
}

/** Records that count what is written to their audit log. */
export class AuditedRecords implements SharedRecords {
  readonly #records: SharedRecords;
  readonly #counts: AuditCounts;

  constructor(records: SharedRecords, counts: AuditCounts) {
    this.#records = records;
    this.#counts = counts;
  }

  async change(change: RecordChange): Promise<ChangeOutcome> {
    if (change.audit === undefined) return this.#records.change(change);
    const action = actionOf(change.audit);
    const outcome = await this.#counted(action, this.#records.change(change));
    this.#counts.count(action, outcome.kind === "changed" ? "written" : outcome.kind);
    return outcome;
  }

  async note(audit: JsonObject): Promise<void> {
    const action = actionOf(audit);
    await this.#counted(action, this.#records.note(audit));
    this.#counts.count(action, "written");
  }

  list(kind: RecordKind): ReadonlyMap<string, SharedRecord> {
    return this.#records.list(kind);
  }

  audit(before: number, countMax: number): Promise<readonly AuditRecord[]> {
    return this.#records.audit(before, countMax);
  }

  known(): Promise<void> {
    return this.#records.known();
  }

  onChange(listener: (kind: RecordKind) => void): () => void {
    return this.#records.onChange(listener);
  }

  close(): void {
    this.#records.close();
  }

  async #counted<T>(action: string, asked: Promise<T>): Promise<T> {
    try {
      return await asked;
    } catch (thrown) {
      this.#counts.count(action, "unknown");
      throw thrown;
    }
  }
}

function actionOf({ action }: JsonObject): string {
  return typeof action === "string" ? action : "none";
}

/** The metric of the audit log; no name of an operator or a key is in it. */
export function auditMetric(counts: AuditCounts): ReadMetric {
  return {
    name: "headgate_audit_entries_total",
    help:
      "Entries for the audit log by this replica, by action (a method of the admin API) and " +
      "outcome: `written`, `conflict` or `full` (nothing was changed), `unknown` (no answer came).",
    labelNames: ["action", "outcome"],
    read: (add) => {
      for (const { action, outcome, count } of counts.entries()) add(count, { action, outcome });
    },
  };
}
