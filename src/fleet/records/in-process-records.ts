import type { Clock } from "../../core/base/clock.js";
import { assert } from "../../core/base/errors.js";
import type { JsonObject } from "../../core/base/json.js";
import { checkAudit, checkChange } from "./record-checks.js";
import { recordOf } from "./record-text.js";
import {
  type AuditRecord,
  auditEntriesMax,
  type ChangeOutcome,
  type RecordChange,
  type RecordKind,
  recordKinds,
  recordsMax,
  type SharedRecord,
  type SharedRecords,
} from "./shared-records.js";

/** Records of a process that shares its store with nobody: they end with it. */
export class InProcessRecords implements SharedRecords {
  readonly #clock: Pick<Clock, "epochUs">;
  readonly #records = new Map<RecordKind, Map<string, SharedRecord>>(
    recordKinds.map((kind) => [kind, new Map()]),
  );
  readonly #versions = new Map<RecordKind, number>();
  readonly #listeners = new Set<(kind: RecordKind) => void>();
  /** The newest last. */
  readonly #audit: AuditRecord[] = [];
  #auditNumber = 0;

  constructor(clock: Pick<Clock, "epochUs">) {
    this.#clock = clock;
  }

  list(kind: RecordKind): ReadonlyMap<string, SharedRecord> {
    return this.#of(kind);
  }

  async change(change: RecordChange): Promise<ChangeOutcome> {
    checkChange(change);
    const { kind, id, value, expectedVersion, audit } = change;
    const records = this.#of(kind);
    const known = records.get(id);
    if ((known?.version ?? 0) !== expectedVersion) {
      return { kind: "conflict", version: known?.version ?? 0 };
    }
    if (known === undefined && value !== undefined && records.size >= recordsMax[kind]) {
      return { kind: "full" };
    }
    const version = (this.#versions.get(kind) ?? 0) + 1;
    this.#versions.set(kind, version);
    if (value === undefined) records.delete(id);
    else records.set(id, recordOf(kind, { id, version }, JSON.stringify(value)));
    if (audit !== undefined) this.#note(audit);
    for (const listener of [...this.#listeners]) listener(kind);
    return { kind: "changed", version };
  }

  async note(audit: JsonObject): Promise<void> {
    checkAudit(audit);
    this.#note(audit);
  }

  async audit(before: number, countMax: number): Promise<readonly AuditRecord[]> {
    const found: AuditRecord[] = [];
    for (let i = this.#audit.length - 1; i >= 0 && found.length < countMax; i -= 1) {
      const entry = this.#audit[i];
      if (entry !== undefined && entry.number < before) found.push(entry);
    }
    return found;
  }

  async known(): Promise<void> {}

  onChange(listener: (kind: RecordKind) => void): () => void {
    const own = (kind: RecordKind): void => listener(kind);
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  close(): void {
    this.#listeners.clear();
  }

  #of(kind: RecordKind): Map<string, SharedRecord> {
    const records = this.#records.get(kind);
    assert(records !== undefined, "every kind has its map");
    return records;
  }

  #note(value: JsonObject): void {
    this.#auditNumber += 1;
    const epochMs = Math.floor(this.#clock.epochUs() / 1_000);
    this.#audit.push({ number: this.#auditNumber, epochMs, value });
    if (this.#audit.length > auditEntriesMax) this.#audit.shift();
  }
}
