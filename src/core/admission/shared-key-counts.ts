/** Calls of one caller or route, whose number in flight is bounded in the fleet. */
export interface SharedKey {
  readonly service: string;
  /** As in the request: any text. */
  readonly key: string;
  /** Maximum number in flight, in the fleet. */
  readonly max: number;
  /** Whether a call above the maximum is refused. If not, it is counted nevertheless. */
  readonly isEnforced: boolean;
}

/** Result of asking for one call. */
export interface SharedKeyAnswer {
  /** Whether the maximum number was in flight already. */
  readonly isOver: boolean;
  /** Gives the call back, exactly once; undefined if it was refused: then none is held. */
  readonly giveBack: (() => void) | undefined;
}

/** Counts calls in flight by key in all replicas. Absent if this process is the only replica. */
export interface SharedKeyCounts {
  /**
   * Takes one. While the store does not answer, this replica counts by itself, up to the maximum
   * divided by the number of replicas, at least 1.
   *
   * @param deadlineMs when its caller stops waiting, on the monotonic clock; Infinity when unknown
   * @param answered called exactly once, never before this returns
   */
  take(key: SharedKey, deadlineMs: number, answered: (answer: SharedKeyAnswer) => void): void;
}
