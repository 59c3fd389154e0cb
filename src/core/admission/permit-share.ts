/** What a replica reports about one fleet limit, at each heartbeat. */
export interface PermitHolder {
  /** Name of the limit, the same in each replica. */
  readonly name: string;
  /** Returns the permits of the whole fleet now: a whole number from 1. */
  fleetLimit(): number;
  /** Returns the permits in use here now. */
  inUseCount(): number;
  /** Returns the maximum of permits in use or asked for here at once, since the last call. */
  takeDemand(): number;
  /** Called when more permits may be in use here than before. */
  shareGrew(): void;
  /**
   * If each replica learns the limit by itself: called with the limit that applies to all, the
   * minimum of what any has learned. Absent: the limit is the same in each of them.
   */
  agreed?(limit: number): void;
}

/** A replica's part of a fleet limit. */
export interface PermitShare {
  /** Returns the permits that may be in use here now: a whole number. */
  permits(nowMs: number): number;
  /** Returns the permits that other replicas have in use, as far as is known. */
  othersInUse(nowMs: number): number;
  /** Whether the others know of them; if not, the limit is divided by the number of replicas. */
  isLeased(nowMs: number): boolean;
  /** Stops asking for permits. Those that are held return when their lease ends. */
  close(): void;
}

/** Divides limits among replicas. */
export interface SharesPermits {
  open(holder: PermitHolder): PermitShare;
}
