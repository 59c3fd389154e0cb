import type { QuotaLeaseAnswer, QuotaLeaseAsk } from "../../core/quota/quota.js";

/** One replica's claims on several pools. */
export interface QuotaClaims {
  readonly replicaId: string;
  /** Increases with each call of a replica. */
  readonly number: number;
  readonly asks: readonly QuotaLeaseAsk[];
}

/**
 * Divides pools of quotas among replicas. A lease starts, on the caller's monotonic clock, before
 * the request is sent, so that it ends before the store gives it to other replicas.
 */
export interface QuotaStore {
  /** Returns one answer for each ask, in order. Each may fail on its own. Never rejects. */
  exchange(claims: QuotaClaims): Promise<readonly QuotaLeaseAnswer[]>;
}
