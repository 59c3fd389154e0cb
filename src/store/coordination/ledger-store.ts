/** Counts by name, each an integer of at least 0. */
export type LedgerSums = ReadonlyMap<string, number>;

/** One replica's entry for a run. */
export interface LedgerEntry {
  /** Name of the run: letters and digits. */
  readonly run: string;
  /** Counts to add to the sums. */
  readonly counts: LedgerSums;
  /** Whether this entry starts the run if the run is not known. */
  readonly begins: boolean;
  /** Whether the sums have been read since the last entry. */
  readonly isLookedAt: boolean;
}

/** The replica that adds an entry, and the number of the entry. */
export interface LedgerAuthor {
  readonly replicaId: string;
  /** Increases with each entry. A repeated entry has the same number. */
  readonly number: number;
}

/** How long the sums of a run are kept without being read: an hour. */
export const ledgerKeptSeconds = 3_600;

/** Maximum number of names of one run. Counts for further names are dropped. */
export const ledgerNamesMax = 4_096;

/**
 * Sums of counts from all replicas for a run of limited time. A run ends when its sums have not
 * been read for `ledgerKeptSeconds`.
 */
export interface LedgerStore {
  /**
   * Adds counts, exactly once even if the call is repeated. Returns the sums of all replicas;
   * undefined: the run is over.
   *
   * @throws ServiceError STORE_ codes; the caller must then add the same entry again before others
   */
  add(entry: LedgerEntry, author: LedgerAuthor): Promise<LedgerSums | undefined>;
}
