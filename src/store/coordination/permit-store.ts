/** One replica's claim on one limit. */
export interface PermitClaim {
  /** Name of the limit, the same in each replica. */
  readonly name: string;
  /** Permits of the whole fleet: an integer of at least 1. */
  readonly limit: number;
  /** Permits that the replica holds and keeps whatever the answer is. */
  readonly heldCount: number;
  /** Permits that the replica could use. */
  readonly neededCount: number;
  /** Whether each replica learns the limit by itself. If so, the lowest of all applies. */
  readonly isLearned: boolean;
}

/** The answer to a claim on one limit. */
export interface PermitAnswer {
  /** Permits that the replica may hold from now on, until the lease ends. */
  readonly grantedCount: number;
  /** Permits that the other replicas hold and can use: those in use, as far as reported. */
  readonly othersInUseCount: number;
  /** The limit that was divided: the replica's own, or the lowest of all if it is learned. */
  readonly limit: number;
}

/** One heartbeat of a replica about some of its limits. */
export interface PermitBeat {
  readonly replicaId: string;
  /** Increases with each heartbeat of a replica. */
  readonly number: number;
  readonly leaseMs: number;
  /** At most `permitClaimsMax`. */
  readonly claims: readonly PermitClaim[];
}

/** Maximum number of limits that one call divides, so that no call takes long. */
export const permitClaimsMax = 100;

/**
 * Divides concurrency limits among the replicas that need permits. The sum of all grants never
 * exceeds the limit. Methods throw ServiceError with STORE_ codes; calls may be repeated.
 *
 * What keeps the sum within the limit:
 * - A grant is recorded before it is answered, so a lost answer leaves too much recorded, never too
 *   little.
 * - Only the replica itself lowers its record, so a replica that is asked to give permits back
 *   keeps those in use until they are free.
 * - A heartbeat that arrives after a later one of its replica is ignored: it would lower the record
 *   below what the later one was granted.
 * - A grant is at most what the other records leave of the limit.
 *
 * Shares are max-min fair by need, and each replica counts as needing at least one permit. Permits
 * that no replica needs are divided evenly, so that a burst need not wait for the next heartbeat.
 * The replicas that need most get the remainder of each division.
 */
export interface PermitStore {
  /**
   * Answers each claim. Undefined: a later heartbeat of the replica has arrived before this one.
   *
   * @param deadlineMs time after which the caller no longer waits for the answer
   */
  claim(beat: PermitBeat, deadlineMs: number): Promise<readonly (PermitAnswer | undefined)[]>;
  /** Frees at once what the replica holds of these limits, at most `permitClaimsMax`. */
  leave(
    holder: { readonly replicaId: string; readonly names: readonly string[] },
    deadlineMs: number,
  ): Promise<void>;
}
