/** Calls of one caller or route, whose number in flight is bounded in the fleet. */
export interface SharedKey {
  readonly service: string;
  /** As the request has it: any text. */
  readonly key: string;
  /** The most in flight, in the fleet. */
  readonly max: number;
  /** Whether a call above it is refused; else it is counted nevertheless. */
  readonly isEnforced: boolean;
}

/** What became of a request for one. */
export interface SharedKeyAnswer {
  /** Whether as many as there may be were in flight already. */
  readonly isOver: boolean;
  /** Gives it back, exactly once; undefined where it was refused: then there is nothing to. */
  readonly giveBack: (() => void) | undefined;
}

/** Counts calls in flight by key over all replicas. Absent where this process is alone. */
export interface SharedKeyCounts {
  /**
   * Takes one. While the store does not answer, this replica counts by itself, up to the maximum
   * divided by the replicas, at least 1.
   *
   * @param deadlineMs when its caller stops waiting, on the monotonic clock; Infinity when unknown
   * @param answered called exactly once, never before this returns
   */
  take(key: SharedKey, deadlineMs: number, answered: (answer: SharedKeyAnswer) => void): void;
}
