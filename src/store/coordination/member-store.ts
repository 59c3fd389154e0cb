/** The live replicas. Methods throw ServiceError with STORE_ codes; calls may be repeated. */
export interface MemberStore {
  /**
   * Sends a heartbeat. Returns how many replicas are live, including this one.
   *
   * @param deadlineMs time after which the caller no longer waits for the answer
   */
  join(
    member: { readonly replicaId: string; readonly leaseMs: number },
    deadlineMs: number,
  ): Promise<number>;
  /** Removes this replica. */
  leave(replicaId: string, deadlineMs: number): Promise<void>;
}
