import type { Clock } from "../../core/base/clock.js";
import type { JsonObject } from "../../core/base/json.js";
import {
  type AuditFollowing,
  type AuditText,
  auditEntriesMax,
  type ChangeOutcome,
  goneRecordsMax,
  pageBytesMax,
  pageRecordsMax,
  type RecordChange,
  type RecordKind,
  type RecordStore,
  type RecordsPage,
  recordsMax,
  type SeenRecords,
  type SharedRecord,
  type StoreChange,
} from "./record-store.js";
import { recordOf } from "./record-text.js";

/** Records of one kind. Both maps are in the order of versions. */
interface KindRecords {
  version: number;
  floor: number;
  readonly kept: Map<string, SharedRecord>;
  /** Versions at which other records were removed. */
  readonly gone: Map<string, number>;
}

/** Never changes: this process loses its records only together with everything that knows them. */
const state = "1";

/** Records of one process. They are lost when it ends. */
export class MemoryRecords implements RecordStore {
  readonly #clock: Pick<Clock, "epochUs">;
  readonly #kinds: Readonly<Record<RecordKind, KindRecords>> = {
    override: noRecords(),
    gate: noRecords(),
    policy: noRecords(),
    session: noRecords(),
    topUp: noRecords(),
  };
  /** Newest last. */
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
    for (const record of kept.values()) {
      if (record.version <= since) continue;
      if (records.length === pageRecordsMax) {
        version = records.at(-1)?.version ?? current;
        break;
      }
      records.push(record);
    }
    const away = [...gone].filter(([, goneAt]) => goneAt > since && goneAt <= version);
    return { kind: "page", version, isAnew, floor, records, gone: away };
  }

  async change(request: StoreChange): Promise<ChangeOutcome | undefined> {
    const { kind, id, value, expectedVersion, audit, seen } = request;
    const { kept } = this.#kinds[kind];
    const known = kept.get(id);
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

  /** Moves a record to the end of the kept or the removed ones. Returns its version. */
  #store({ kind, id, value }: RecordChange): number {
    const records = this.#kinds[kind];
    const { kept, gone } = records;
    records.version += 1;
    const { version } = records;
    kept.delete(id);
    gone.delete(id);
    if (value !== undefined) {
      kept.set(id, recordOf(kind, { id, version }, JSON.stringify(value)));
      return version;
    }
    gone.set(id, version);
    for (const [oldest, goneAt] of gone) {
      if (gone.size <= goneRecordsMax) break;
      gone.delete(oldest);
      records.floor = goneAt;
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

/** Returns as many of the newest entries as fit, but at least one; newest first. */
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
