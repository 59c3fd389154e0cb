import type { Clock } from "../../core/base/clock.js";
import type { JsonObject } from "../../core/base/json.js";
import {
  type AuditFollowing,
  type AuditText,
  auditEntriesMax,
  type ChangeOutcome,
  type ChangeRequest,
  goneRecordsMax,
  pageBytesMax,
  pageRecordsMax,
  type RecordKind,
  type RecordStore,
  type RecordsPage,
  recordsMax,
  type SeenRecords,
  type SharedRecord,
} from "./record-store.js";
import { recordOf } from "./record-text.js";

/** A record as it is kept. */
interface KeptRecord {
  readonly record: SharedRecord;
  readonly version: number;
  readonly bytes: number;
  /** Of the change that made it. */
  readonly name: string;
}

interface GoneRecord {
  readonly version: number;
  readonly name: string;
}

/** Records of one kind; both maps in the order of versions. */
interface KindRecords {
  version: number;
  floor: number;
  readonly kept: Map<string, KeptRecord>;
  readonly gone: Map<string, GoneRecord>;
}

/** What this process keeps is lost only together with all that know it. */
const state = "1";

/** Records of one process: they end with it. */
export class MemoryRecords implements RecordStore {
  readonly #clock: Pick<Clock, "epochUs">;
  readonly #kinds: Readonly<Record<RecordKind, KindRecords>> = {
    override: noRecords(),
    gate: noRecords(),
    policy: noRecords(),
  };
  /** The newest last. */
  readonly #audit: AuditText[] = [];
  #auditNumber = 0;

  constructor(clock: Pick<Clock, "epochUs">) {
    this.#clock = clock;
  }

  async state(): Promise<string> {
    return state;
  }

  async read(kind: RecordKind, seen: SeenRecords): Promise<RecordsPage | undefined> {
    const { version: current, floor, kept, gone } = this.#kinds[kind];
    if (seen.state !== state) return { kind: "other", state };
    if (current === seen.version) return undefined;
    const isAnew = seen.version > 0 && seen.version < floor;
    const since = isAnew ? 0 : seen.version;
    const records: SharedRecord[] = [];
    let version = current;
    let room = pageBytesMax;
    for (const { record, bytes } of kept.values()) {
      if (record.version <= since) continue;
      if (records.length > 0 && (bytes > room || records.length === pageRecordsMax)) {
        version = records.at(-1)?.version ?? current;
        break;
      }
      room -= bytes;
      records.push(record);
    }
    const away = [...gone].flatMap(([id, one]) =>
      one.version > since && one.version <= version ? [[id, one.version] as const] : [],
    );
    return { kind: "page", version, isAnew, floor, records, gone: away };
  }

  async change(request: ChangeRequest): Promise<ChangeOutcome | undefined> {
    const { kind, id, value, expectedVersion, audit, name, seen } = request;
    const { kept, gone } = this.#kinds[kind];
    const known = kept.get(id);
    const last = known ?? gone.get(id);
    if (last?.name === name) return { kind: "changed", version: last.version };
    if (seen.state !== state) return undefined;
    const before = known?.version ?? 0;
    if (before !== expectedVersion) return { kind: "conflict", version: before };
    if (known === undefined && value !== undefined && kept.size >= recordsMax[kind]) {
      return { kind: "full" };
    }
    const version = this.#store(request);
    if (audit !== undefined) this.#note(audit);
    return { kind: "changed", version };
  }

  async note(audit: JsonObject): Promise<void> {
    this.#note(audit);
  }

  async audit(before: number, countMax: number): Promise<readonly AuditText[]> {
    const oldest = this.#auditNumber - this.#audit.length + 1;
    const end = Math.max(0, Math.min(this.#audit.length, before - oldest));
    return newest(this.#audit.slice(Math.max(0, end - countMax), end), pageBytesMax);
  }

  async followAudit(following: AuditFollowing): Promise<readonly AuditText[]> {
    const count = Math.min(following.countMax, this.#auditNumber - following.since);
    if (count <= 0 || following.state !== state) return [];
    return newest(this.#audit.slice(-count), following.bytesMax);
  }

  /** Stands last among the kept or the gone ones from now on. Answers its version. */
  #store({ kind, id, value, name }: ChangeRequest): number {
    const records = this.#kinds[kind];
    const { kept, gone } = records;
    records.version += 1;
    const { version } = records;
    kept.delete(id);
    gone.delete(id);
    if (value !== undefined) {
      const text = JSON.stringify(value);
      const record = recordOf(kind, { id, version }, text);
      kept.set(id, { record, version, bytes: text.length, name });
      return version;
    }
    gone.set(id, { version, name });
    for (const [oldest, one] of gone) {
      if (gone.size <= goneRecordsMax) break;
      gone.delete(oldest);
      records.floor = one.version;
    }
    return version;
  }

  #note(value: JsonObject): void {
    this.#auditNumber += 1;
    const epochMs = Math.floor(this.#clock.epochUs() / 1_000);
    this.#audit.push({ number: this.#auditNumber, epochMs, text: JSON.stringify(value) });
    if (this.#audit.length > auditEntriesMax) this.#audit.shift();
  }
}

function noRecords(): KindRecords {
  return { version: 0, floor: 0, kept: new Map(), gone: new Map() };
}

/** As many of the newest as there is room for, one at least; the newest first. */
function newest(entries: readonly AuditText[], bytesMax: number): readonly AuditText[] {
  let bytes = 0;
  const found: AuditText[] = [];
  for (const entry of entries.toReversed()) {
    bytes += entry.text.length;
    if (found.length > 0 && bytes > bytesMax) break;
    found.push(entry);
  }
  return found;
}
