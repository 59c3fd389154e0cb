/** What a replica says of one limit of the fleet, at each heartbeat. */
export interface PermitHolder {
  /** Names the limit among replicas, the same in each of them. */
  readonly name: string;
  /** Permits of the whole fleet now: a whole number from 1. */
  fleetLimit(): number;
  /** Permits in use here now. */
  inUseCount(): number;
  /** The most that were in use here at once, or asked for, since this was called last. */
  takeDemand(): number;
  /** More may be in use here than a moment ago. */
  shareGrew(): void;
  /**
   * Where each replica learns the limit by itself: hears what holds for all, which is the least
   * that any has learned. Absent: the limit is the same in each of them.
   */
  agreed?(limit: number): void;
}

/** A replica's part of a limit of the fleet. */
export interface PermitShare {
  /** Permits that may be in use here now: a whole number. */
  permits(nowMs: number): number;
  /** Permits that other replicas have in use, as far as is known. */
  othersInUse(nowMs: number): number;
  /** Whether others know of them; else the limit is divided by the number of replicas. */
  isLeased(nowMs: number): boolean;
  /** Asks for nothing any more; what was held returns with its lease. */
  close(): void;
}

/** Who divides limits among replicas. */
export interface SharesPermits {
  open(holder: PermitHolder): PermitShare;
}
