import type { SharedRecord } from "./shared-records.js";

/** Records taken away that are remembered: who has missed more reads everything anew. */
export const goneRecordsMax = 5_000;

/** What a replica knows of the records of one kind, or what a store has of them. */
export interface KnownRecords {
  /** All changes up to this one are in it. */
  readonly version: number;
  readonly records: ReadonlyMap<string, SharedRecord>;
  /** The versions at which others were taken away: at most `goneRecordsMax`, the newest ones. */
  readonly gone: ReadonlyMap<string, number>;
  /** Up to this version, what was taken away is not remembered. */
  readonly floor: number;
}

/** Before anything is known. */
export const nothingKnown: KnownRecords = {
  version: 0,
  records: new Map(),
  gone: new Map(),
  floor: 0,
};

/** What a store lacks: a record, or that one was taken away. */
export interface MissingRecord {
  readonly id: string;
  readonly version: number;
  /** Undefined: it was taken away. */
  readonly record: SharedRecord | undefined;
}

/** What two know together, and what the second one lacks of it. */
export interface CombinedRecords {
  readonly known: KnownRecords;
  /** By version, so that nothing stands in the store before what it names. */
  readonly missing: readonly MissingRecord[];
}

/**
 * Combines what a replica knows with what a store has: of each record the newer version, where to
 * be taken away is one, too. Records keep the order in which the replica has them; where none of
 * them is another one, the map stays the same.
 */
export function combineKnown(own: KnownRecords, stored: KnownRecords): CombinedRecords {
  const records = new Map<string, SharedRecord>();
  const missing: MissingRecord[] = [];
  for (const [id, record] of own.records) {
    const { version } = record;
    const there = stored.records.get(id);
    const isGone = there === undefined && (stored.gone.get(id) ?? stored.floor) >= version;
    if (isGone) continue;
    if (there !== undefined && there.version > version) records.set(id, there);
    else records.set(id, record);
    if ((there?.version ?? 0) < version) missing.push({ id, version, record });
  }
  for (const [id, record] of stored.records) {
    if (!own.records.has(id) && (own.gone.get(id) ?? 0) < record.version) records.set(id, record);
  }
  for (const [id, version] of own.gone) {
    const there = stored.records.get(id)?.version ?? stored.gone.get(id) ?? stored.floor;
    if (there < version) missing.push({ id, version, record: undefined });
  }
  const isSame =
    records.size === own.records.size &&
    [...records].every(([id, record]) => own.records.get(id) === record);
  missing.sort((a, b) => a.version - b.version);
  const gone = [...own.gone, ...stored.gone].filter(([id]) => !records.has(id));
  return {
    known: {
      version: stored.version,
      records: isSame ? own.records : records,
      gone: newestGone(gone),
      floor: Math.max(own.floor, stored.floor),
    },
    missing,
  };
}

/** The newest ones of those that were taken away, by their versions. */
export function newestGone(gone: Iterable<readonly [string, number]>): ReadonlyMap<string, number> {
  const ascending = [...gone].sort(([, a], [, b]) => a - b);
  const all = new Map(ascending);
  for (const id of all.keys()) {
    if (all.size <= goneRecordsMax) break;
    all.delete(id);
  }
  return all;
}
