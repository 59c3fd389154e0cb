import {
  goneRecordsMax,
  type MissingRecord,
  type RecordsPage,
  type SharedRecord,
} from "../../store/coordination/record-store.js";

/** The records of one kind, as a replica knows them or as a store has them. */
export interface KnownRecords {
  /** All changes up to this version are included. */
  readonly version: number;
  readonly records: ReadonlyMap<string, SharedRecord>;
  /** The versions at which other records were deleted: the latest `goneRecordsMax` of them. */
  readonly gone: ReadonlyMap<string, number>;
  /** Deletions up to this version are not included. */
  readonly floor: number;
}

/** The initial state. */
export const nothingKnown: KnownRecords = {
  version: 0,
  records: new Map(),
  gone: new Map(),
  floor: 0,
};

/**
 * Applies a page that the store has returned. Never modifies the existing map, and returns the same
 * one if nothing has changed.
 */
export function learnPage(
  before: KnownRecords,
  page: Extract<RecordsPage, { kind: "page" }>,
): KnownRecords {
  const { version, floor, isAnew } = page;
  if (page.records.length + page.gone.length === 0 && !isAnew) return { ...before, version, floor };
  const records = new Map(isAnew ? [] : before.records);
  const gone = new Map(isAnew ? [] : before.gone);
  for (const record of page.records) {
    records.set(record.id, record);
    gone.delete(record.id);
  }
  for (const [id, goneVersion] of page.gone) {
    records.delete(id);
    gone.set(id, goneVersion);
  }
  return { version, records, gone: newestGone(gone), floor };
}

/** The merged records, and those that the second one lacks. */
export interface CombinedRecords {
  readonly known: KnownRecords;
  /** By version, so that a record is restored after those it refers to. */
  readonly missing: readonly MissingRecord[];
}

/**
 * Merges what a replica knows with what a store has. The newer version of each record wins; a
 * deletion is a version too. The replica's order of records is kept, and so is its map if no record
 * changes.
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

/** The latest deletions, by version. */
function newestGone(gone: Iterable<readonly [string, number]>): ReadonlyMap<string, number> {
  const ascending = [...gone].sort(([, a], [, b]) => a - b);
  const all = new Map(ascending);
  for (const id of all.keys()) {
    if (all.size <= goneRecordsMax) break;
    all.delete(id);
  }
  return all;
}
