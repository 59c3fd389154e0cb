import type { JsonObject } from "../../core/base/json.js";
import type { AuditRecord, SharedRecords } from "../../fleet/records/shared-records.js";
import type {
  ChangeOutcome,
  RecordChange,
  RecordKind,
  SharedRecord,
} from "../../store/coordination/record-store.js";
import type { ReadMetric } from "../base/metrics.js";

/** What became of an entry of the audit log, and of the change that it is about. */
type AuditOutcome =
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

/** Told of an entry for the audit log. */
export type OnAuditEntry = (entry: JsonObject, outcome: AuditOutcome) => void;

/** Records that count what is written to their audit log. */
export class AuditedRecords implements SharedRecords {
  readonly #records: SharedRecords;
  readonly #counts: AuditCounts;
  readonly #onEntry: OnAuditEntry | undefined;

  /** @param onEntry told of each entry, and what became of it; undefined: nobody is */
  constructor(records: SharedRecords, counts: AuditCounts, onEntry?: OnAuditEntry) {
    this.#records = records;
    this.#counts = counts;
    this.#onEntry = onEntry;
  }

  async change(change: RecordChange): Promise<ChangeOutcome> {
    if (change.audit === undefined) return this.#records.change(change);
    const { audit } = change;
    const outcome = await this.#counted(audit, this.#records.change(change));
    this.#tell(audit, outcome.kind === "changed" ? "written" : outcome.kind);
    return outcome;
  }

  async note(audit: JsonObject): Promise<void> {
    await this.#counted(audit, this.#records.note(audit));
    this.#tell(audit, "written");
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

  async #counted<T>(audit: JsonObject, asked: Promise<T>): Promise<T> {
    try {
      return await asked;
    } catch (thrown) {
      this.#tell(audit, "unknown");
      throw thrown;
    }
  }

  #tell(audit: JsonObject, outcome: AuditOutcome): void {
    this.#counts.count(actionOf(audit), outcome);
    this.#onEntry?.(audit, outcome);
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
      "Audit log entries of this replica, by action (an admin API method) and " +
      "outcome: `written`, `conflict` or `full` (nothing changed), `unknown` (no " +
      "answer).",
    labelNames: ["action", "outcome"],
    read: (add) => {
      for (const { action, outcome, count } of counts.entries()) add(count, { action, outcome });
    },
  };
}
