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
  /** What this replica is called in the audit log. */
  readonly replica: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly opened: Pick<OpenStore, "coordination">;
}

/** What operators have said, for all replicas of a store. */
export interface OperatorRecords {
  readonly records: SharedRecords;
  /** What decisions go by. */
  readonly overrides: OverrideRegistry;
  readonly metrics: MetricGroup;
  /** Asks no more, and changes nothing any more. */
  readonly close: () => void;
}

/**
 * Opens the records beside the limits: in the same store, or in this process where it shares its
 * store with nobody. What was known last stays active while the store is away.
 */
export function openOperatorRecords(parts: OperatorRecordsParts): OperatorRecords {
  const { clock, logger, config } = parts;
  const auditCounts = new AuditCounts();
  const onEntry = config.auditLog ? auditLog(logger) : undefined;
  const onRestored = (event: RestoredEvent): void => {
    logRestored(event, logger);
    // Who cannot be told now has the log.
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

/** Writes entries, whatever became of them: one may be in the store though no answer came. */
function auditLog(logger: Logger): OnAuditEntry {
  return (entry, outcome) => {
    const facts = Object.entries(entry).map(([name, value]) => [name, printable(value)]);
    logger.info({ event: "audit", ...Object.fromEntries(facts), outcome }, "For the audit log.");
  };
}

/** Without what would act on a terminal or turn text around; JSON itself escapes the rest. */
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

/** The most records of a kind that are named when they were put back; more are only counted. */
const restoredNamedMax = 100;

/** Names each record that was put back: an operator looks for the one that was lost by its name. */
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

/** What an operator calls it: records of overrides have names with a digest of their domain. */
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

/** The metrics of operators' records; no name of a key or an operator is in them. */
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
type OnAuditEntry = (entry: JsonObject, outcome: AuditOutcome) => void;

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
