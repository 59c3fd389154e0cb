/** Who made a snapshot, and which of its snapshots it is. */
export interface SnapshotVersion {
  /** Of the leader's term: a whole number from 1. */
  readonly term: number;
  /** Lower-case hexadecimal. */
  readonly leaderId: string;
  /** Grows with each snapshot of a term. */
  readonly version: number;
}

/** The rank below all others: of who has seen no snapshot yet. */
export const lowestRank: SnapshotVersion = { term: 0, leaderId: "0", version: 0 };

/**
 * Below 0 where the first is older than the second, 0 where they are the same. By term, then by
 * the leader's name, then by version: two leaders share a term only where a store has lost what
 * it was told, and then all have to agree on one of them.
 */
export function compareRanks(one: SnapshotVersion, other: SnapshotVersion): number {
  if (one.term !== other.term) return one.term - other.term;
  if (one.leaderId !== other.leaderId) return one.leaderId < other.leaderId ? -1 : 1;
  return one.version - other.version;
}

/** Reads a rank as the store holds it, `7 5f3a 42`; undefined for a text that is none. */
export function parseRank(text: string): SnapshotVersion | undefined {
  const [, term, leaderId, version] = rankPattern.exec(text) ?? [];
  if (term === undefined || leaderId === undefined || version === undefined) return undefined;
  return { term: Number(term), leaderId, version: Number(version) };
}

/** Numbers of 15 digits are exact, here and in the store. */
const rankPattern = /^(\d{1,15}) ([0-9a-f]{1,64}) (\d{1,15})$/;
