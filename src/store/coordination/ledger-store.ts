/** Counts by name, each a whole number from 0. */
export type LedgerSums = ReadonlyMap<string, number>;

/** What a replica has to say about a run. */
export interface LedgerEntry {
  /** Which run: letters and digits. */
  readonly run: string;
  /** What is added to the sums. */
  readonly counts: LedgerSums;
  /** Whether the run begins with this, where it is not known. */
  readonly begins: boolean;
  /** Whether somebody has looked at the sums since the last entry. */
  readonly isLookedAt: boolean;
}

/** Who adds an entry, and which of its entries it is. */
export interface LedgerAuthor {
  readonly replicaId: string;
  /** Grows with each entry; the same entry again has the same one. */
  readonly number: number;
}

/** How long the sums of a run are kept that nobody looks at: an hour. */
export const ledgerKeptSeconds = 3_600;

/** The most names of one run; what comes under further ones is left out. */
export const ledgerNamesMax = 4_096;

/**
 * The sums of something that runs in all replicas for a while. A run ends when nobody has looked
 * for `ledgerKeptSeconds`.
 */
export interface LedgerStore {
  /**
   * Adds counts, once whatever the network does. Answers the sums of all replicas; undefined: the
   * run is over.
   *
   * @throws ServiceError STORE_ codes; the same entry is to be added again then, before any other
   */
  add(entry: LedgerEntry, author: LedgerAuthor): Promise<LedgerSums | undefined>;
}
