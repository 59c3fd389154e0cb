/** What one replica says of one limit. */
export interface PermitClaim {
  /** Names the limit, the same in each replica. */
  readonly name: string;
  /** Permits of the whole fleet: a whole number from 1. */
  readonly limit: number;
  /** What the replica holds: it has this whatever is answered. */
  readonly heldCount: number;
  /** What it could use. */
  readonly neededCount: number;
  /** Whether each replica learns the limit by itself: then the least of them all holds. */
  readonly isLearned: boolean;
}

/** What a replica hears of one limit. */
export interface PermitAnswer {
  /** What it may hold from now on, until the lease is over. */
  readonly grantedCount: number;
  /** What the other replicas hold of it and can use: what they have in use, as far as they told. */
  readonly othersInUseCount: number;
  /** The limit that was divided: the replica's own, or the least of all where it is learned. */
  readonly limit: number;
}

/** One heartbeat of a replica about some of its limits. */
export interface PermitBeat {
  readonly replicaId: string;
  /** Grows with each heartbeat of a replica. */
  readonly number: number;
  readonly leaseMs: number;
  /** At most `permitClaimsMax`. */
  readonly claims: readonly PermitClaim[];
}

/** The most limits that one call divides, so that it is never a long one. */
export const permitClaimsMax = 100;

/**
 * Divides limits of permits among those who say that they need some, so that all that is granted
 * never exceeds the limit. Methods throw ServiceError with STORE_ codes; calls may be repeated.
 *
 * What keeps the sum within the limit:
 * - a grant is recorded before it is answered, so a lost answer leaves too much recorded, never too
 *   little;
 * - a record falls only by what its replica says, so who is asked to give back keeps what is in use
 *   until it is not;
 * - a heartbeat that arrives late, after another of its replica, is left aside: it would lower the
 *   record below what the later one was granted;
 * - what is granted is at most what the other records leave of the limit.
 *
 * Who should have how much: max-min fair by need, each replica counted as in need of one; what
 * nobody needs is divided evenly, so that a burst need not wait for the next heartbeat. Those who
 * need most have what does not divide.
 */
export interface PermitStore {
  /**
   * What is so of each limit; undefined: a later heartbeat of the replica has come before.
   *
   * @param deadlineMs when nobody waits for the answer any more
   */
  claim(beat: PermitBeat, deadlineMs: number): Promise<readonly (PermitAnswer | undefined)[]>;
  /** What the replica held of these limits is free at once. @param names at most so many */
  leave(
    holder: { readonly replicaId: string; readonly names: readonly string[] },
    deadlineMs: number,
  ): Promise<void>;
}
