/** The replicas that live. Methods throw ServiceError with STORE_ codes; calls may be repeated. */
export interface MemberStore {
  /**
   * One heartbeat. Answers how many replicas are live, this one included.
   *
   * @param deadlineMs when nobody waits for the answer any more
   */
  join(
    member: { readonly replicaId: string; readonly leaseMs: number },
    deadlineMs: number,
  ): Promise<number>;
  /** This replica goes. */
  leave(replicaId: string, deadlineMs: number): Promise<void>;
}
