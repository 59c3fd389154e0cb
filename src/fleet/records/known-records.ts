import {
  goneRecordsMax,
  type MissingRecord,
  type RecordsPage,
  type SharedRecord,
} from "../../store/coordination/record-store.js";

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

/**
 * What is known after a page that a store has answered. Readers of a map keep it as it is; where
 * nothing is new in it, it stays the same.
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
function newestGone(gone: Iterable<readonly [string, number]>): ReadonlyMap<string, number> {
  const ascending = [...gone].sort(([, a], [, b]) => a - b);
  const all = new Map(ascending);
  for (const id of all.keys()) {
    if (all.size <= goneRecordsMax) break;
    all.delete(id);
  }
  return all;
}
