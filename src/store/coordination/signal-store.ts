/** One replica's turn to poll a source of readings. */
export interface SignalTurn {
  /** Id of the source: lower-case hexadecimal, up to 64 digits. */
  readonly source: string;
  /** Lower-case hexadecimal, up to 64 digits. */
  readonly replicaId: string;
  /** How long the turn lasts without another `take` or `tell`, in milliseconds. */
  readonly turnMs: number;
}

/** Maximum size of shared readings, in bytes of UTF-8. */
export const sharedReadingsBytesMax = 262_144;

/**
 * Readings that one replica polls for all replicas. Methods throw ServiceError with STORE_ codes;
 * each replica then polls by itself.
 */
export interface SignalStore {
  /**
   * Takes or keeps the turn. If another replica has the turn, returns the readings that it has
   * published; undefined: this replica has the turn, or there are no readings.
   *
   * @param deadlineMs time after which the caller no longer waits for the answer
   */
  take(turn: SignalTurn, deadlineMs: number): Promise<string | undefined>;
  /** Publishes readings of the replica that has the turn. Ignored from any other replica. */
  tell(turn: SignalTurn, readings: string): Promise<void>;
  /** Ends the turn, so that another replica may try. */
  release(turn: SignalTurn): Promise<void>;
}
