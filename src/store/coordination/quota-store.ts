import type { QuotaLeaseAnswer, QuotaLeaseAsk } from "../../core/quota/quota.js";

/** What one replica claims of pools, all at once. */
export interface QuotaClaims {
  readonly replicaId: string;
  /** Grows with each call of a replica. */
  readonly number: number;
  readonly asks: readonly QuotaLeaseAsk[];
}

/**
 * Divides pools of quotas among replicas. A lease counts by the caller's monotonic clock from
 * before it was asked for, which is before the store gives it to others.
 */
export interface QuotaStore {
  /** One answer an ask, in order: some may fail and others not. Never rejects. */
  exchange(claims: QuotaClaims): Promise<readonly QuotaLeaseAnswer[]>;
}
