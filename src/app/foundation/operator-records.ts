import { auditEntry } from "../../core/base/audit-entry.js";
import type { Clock, Random } from "../../core/base/clock.js";
import type { JsonObject, JsonValue } from "../../core/base/json.js";
import { OverrideRegistry } from "../../fleet/records/override-registry.js";
import { type RecordsEvent, ReplicatedRecords } from "../../fleet/records/replicated-records.js";
import type { AuditRecord, SharedRecords } from "../../fleet/records/shared-records.js";
import type {
  ChangeOutcome,
  RecordChange,
  RecordKind,
  SharedRecord,
} from "../../store/coordination/record-store.js";
import type { Logger } from "../base/logger.js";
import type { MetricGroup, ReadMetric } from "../base/metrics.js";
import type { Config } from "../config/config.js";
import type { OpenStore } from "../store/open-store.js";
import { remedyOf } from "../store/store-remedies.js";

interface OperatorRecordsParts {
  readonly config: Pick<Config, "auditLog">;
  /** Identifier of this replica in the audit log. */
  readonly replica: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly opened: Pick<OpenStore, "coordination">;
}

/** Changes by operators, for all replicas of a store. */
export interface OperatorRecords {
  readonly records: SharedRecords;
  /** Overrides that decisions apply. */
  readonly overrides: OverrideRegistry;
  readonly metrics: MetricGroup;
  /** Stops reading and writing records. */
  readonly close: () => void;
}

/**
 * Opens the records in the same store as the limits, or in this process if its store is not shared.
 * The last known ones stay active while the store is unreachable.
 */
export function openOperatorRecords(parts: OperatorRecordsParts): OperatorRecords {
  const { clock, logger, config } = parts;
  const auditCounts = new AuditCounts();
  const onEntry = config.auditLog ? auditLog(logger) : undefined;
  const onRestored = (event: RestoredEvent): void => {
    logRestored(event, logger);
    // If it cannot be recorded now, the log has it.
    records.note(restoredEntry(event, parts.replica)).catch(() => {});
  };
  const records = new AuditedRecords(openRecords(parts, onRestored), auditCounts, onEntry);
  const onUnreadable = (count: number): void => {
    const line = { event: "overridesUnreadable", count };
    logger.warn(line, "Override records in the store cannot be read by this version; skipped.");
  };
  const overrides = new OverrideRegistry({ records, clock, onUnreadable });
  return {
    records,
    overrides,
    metrics: operatorMetrics(overrides, auditCounts),
    close: () => {
      overrides.close();
      records.close();
    },
  };
}

/** Logs every entry with its outcome: one may be in the store although no response came. */
function auditLog(logger: Logger): OnAuditEntry {
  return (entry, outcome) => {
    const facts = Object.entries(entry).map(([name, value]) => [name, printable(value)]);
    logger.info({ event: "audit", ...Object.fromEntries(facts), outcome }, "For the audit log.");
  };
}

/** Replaces characters that act on a terminal or reverse text. JSON itself escapes the others. */
function printable(value: JsonValue): JsonValue {
  if (typeof value !== "string") return value;
  return value.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "\ufffd");
}

type RestoredEvent = Extract<RecordsEvent, { kind: "recordsRestored" }>;

function openRecords(
  { opened, clock, random, logger }: OperatorRecordsParts,
  onRestored: (event: RestoredEvent) => void,
): SharedRecords {
  return new ReplicatedRecords({
    store: opened.coordination.records,
    clock,
    random,
    onEvent: (event) => {
      if (event.kind === "recordsRestored") onRestored(event);
      else if (event.kind === "auditRestored") {
        const { kind, count } = event;
        const sentence = "The store had lost audit log entries; this replica has restored them.";
        logger.warn({ event: kind, count }, sentence);
      } else logRecords(event, logger);
    },
  });
}

/** Maximum number of restored records of a kind that are named. Others are only counted. */
const restoredNamedMax = 100;

/** Logs the name of each restored record: an operator searches for a lost one by its name. */
function logRestored({ recordKind, records }: RestoredEvent, logger: Logger): void {
  for (const record of records.slice(0, restoredNamedMax)) {
    const { domain, author, version } = record.value;
    const id = givenId(record);
    logger.warn(
      { event: "recordRestored", recordKind, id, domain, author, policyVersion: version },
      `The store had lost this ${recordKind} record; this replica has restored it.`,
    );
  }
  logger.warn(
    { event: "recordsRestored", recordKind, count: records.length },
    "The store had lost operators' records, which are restored. Check whether it " +
      "persists its data to disk.",
  );
}

/** Returns the operator's name for it: ids of override records contain a digest of the domain. */
function givenId({ id, value }: SharedRecord): JsonValue {
  return value["id"] ?? id;
}

function restoredEntry({ recordKind, records }: RestoredEvent, replica: string): JsonObject {
  const ids = records.slice(0, restoredNamedMax).map(givenId);
  return auditEntry({
    actor: { name: "headgate", role: "operator" },
    action: "RestoreRecords",
    subject: recordKind,
    domain: undefined,
    before: undefined,
    after: { count: records.length, ids },
    reason: "The store had lost them.",
    replica,
  });
}

function logRecords(
  event: Extract<RecordsEvent, { kind: "recordsLost" | "recordsFound" }>,
  logger: Logger,
): void {
  const { kind, ...facts } = event;
  const line = { event: kind, ...facts };
  if (event.kind === "recordsFound") {
    logger.info(line, "Operators' changes are read from the store again.");
    return;
  }
  logger.warn(
    { ...line, remedy: remedyOf(event.code) },
    "Operators' changes cannot be read from the store; the last known ones stay active.",
  );
}

/** Returns the metrics of operators' records. They contain no names of keys or operators. */
export function operatorMetrics(
  overrides: Pick<OverrideRegistry, "current" | "unreadableCount">,
  auditCounts: AuditCounts,
): MetricGroup {
  return {
    gauges: [
      {
        name: "headgate_overrides",
        help: "Active overrides on this replica.",
        read: (add) => add(overrides.current().size),
      },
      {
        name: "headgate_override_records_unreadable",
        help: "Override records in the store that this version cannot read; skipped.",
        read: (add) => add(overrides.unreadableCount),
      },
    ],
    counters: [auditMetric(auditCounts)],
  };
}

/** Outcome of an audit log entry, and of the change that it describes. */
type AuditOutcome =
  | "written"
  /** Another change came first: nothing was changed or written. */
  | "conflict"
  /** The maximum number of records is reached: nothing was changed or written. */
  | "full"
  /** The store failed: it is not known whether it was written. */
  | "unknown";

/** Counts of audit log entries that this replica tried to write. Plain integers. */
export class AuditCounts {
  readonly #counts = new Map<string, Map<AuditOutcome, number>>();

  /** @param action that it is about, from a closed set: a method of the admin API */
  count(action: string, outcome: AuditOutcome): void {
    const known = this.#counts.get(action) ?? new Map<AuditOutcome, number>();
    this.#counts.set(action, known.set(outcome, (known.get(outcome) ?? 0) + 1));
  }

  /** Yields all counts. */
  *entries(): Iterable<{ action: string; outcome: AuditOutcome; count: number }> {
    for (const [action, outcomes] of this.#counts) {
      for (const [outcome, count] of outcomes) yield { action, outcome, count };
    }
  }
}

/** Receives an entry for the audit log and its outcome. */
type OnAuditEntry = (entry: JsonObject, outcome: AuditOutcome) => void;

/** Records that count the entries of their audit log. */
export class AuditedRecords implements SharedRecords {
  readonly #records: SharedRecords;
  readonly #counts: AuditCounts;
  readonly #onEntry: OnAuditEntry | undefined;

  /** @param onEntry receives each entry and its outcome; undefined: not reported */
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

/** Returns the metric of the audit log. It contains no names of operators or keys. */
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
