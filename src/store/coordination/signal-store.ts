/** One replica's turn to poll a source of readings. */
export interface SignalTurn {
  /** What the source is known by: lower-case hexadecimal, up to 64 digits. */
  readonly source: string;
  /** Lower-case hexadecimal, up to 64 digits. */
  readonly replicaId: string;
  /** How long it lasts unless it is taken or told again, in milliseconds. */
  readonly turnMs: number;
}

/** The longest readings that are shared, in bytes of UTF-8. */
export const sharedReadingsBytesMax = 262_144;

/**
 * Readings that one replica polls for all of them. Methods throw ServiceError with STORE_ codes;
 * then each replica polls by itself.
 */
export interface SignalStore {
  /**
   * Takes the turn, or keeps it. Returns what another replica has told while it has the turn;
   * undefined: this replica has the turn, or nothing has been told.
   *
   * @param deadlineMs when nobody waits for the answer any more
   */
  take(turn: SignalTurn, deadlineMs: number): Promise<string | undefined>;
  /** Tells what the turn's replica has read; from any other it is ignored. */
  tell(turn: SignalTurn, readings: string): Promise<void>;
  /** Ends the turn, so that another replica may try. */
  release(turn: SignalTurn): Promise<void>;
}
