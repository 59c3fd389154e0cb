/** The leader that created a snapshot, and the version of the snapshot. */
export interface SnapshotVersion {
  /** The leader's term: an integer of at least 1. */
  readonly term: number;
  /** Lower-case hexadecimal. */
  readonly leaderId: string;
  /** Increases with each snapshot of a term. */
  readonly version: number;
}

/** The lowest rank, of a replica that has seen no snapshot yet. */
export const lowestRank: SnapshotVersion = { term: 0, leaderId: "0", version: 0 };

/**
 * Returns a number below 0 if the first rank is older than the second, 0 if they are equal.
 * Compares the term, then the leader's id, then the version. Two leaders share a term only if the
 * store has lost data, and then all replicas must agree on one of them.
 */
export function compareRanks(one: SnapshotVersion, other: SnapshotVersion): number {
  if (one.term !== other.term) return one.term - other.term;
  if (one.leaderId !== other.leaderId) return one.leaderId < other.leaderId ? -1 : 1;
  return one.version - other.version;
}

/** Parses a rank as the store keeps it, such as `7 5f3a 42`; undefined for any other text. */
export function parseRank(text: string): SnapshotVersion | undefined {
  const [, term, leaderId, version] = rankPattern.exec(text) ?? [];
  if (term === undefined || leaderId === undefined || version === undefined) return undefined;
  return { term: Number(term), leaderId, version: Number(version) };
}

/** Numbers of up to 15 digits are exact both here and in the store. */
const rankPattern = /^(\d{1,15}) ([0-9a-f]{1,64}) (\d{1,15})$/;
