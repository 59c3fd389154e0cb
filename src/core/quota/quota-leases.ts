import type { ErrorCode } from "../base/errors.js";
import type { QuotaClaim, QuotaLease } from "./quota.js";

/** What a replica says of one pool, and for how long. */
export interface QuotaLeaseAsk {
  /** Names the pool among replicas, the same in each of them; no text of callers. */
  readonly pool: string;
  readonly claim: QuotaClaim;
  /** How long the lease is to hold, in milliseconds, from 1. */
  readonly leaseMs: number;
}

/** What becomes of a claim. */
export type QuotaLeaseAnswer =
  | { readonly kind: "leased"; readonly lease: QuotaLease }
  /** A later claim of this replica was answered before: this one says nothing. */
  | { readonly kind: "overtaken" }
  /** Nothing is known to have changed: what was leased before holds until it is over. */
  | { readonly kind: "failed"; readonly code: ErrorCode };

/**
 * Who divides pools among replicas. All live leases of a pool together never exceed what the
 * claims say may be handed out of it; where that has fallen below what is held already, nothing
 * grows until it fits again.
 */
export interface LeasesQuotas {
  /** One answer an ask, in order. Never rejects. */
  exchange(asks: readonly QuotaLeaseAsk[]): Promise<readonly QuotaLeaseAnswer[]>;
}

/** The most pools that one call to the store is about, so that none takes long. */
export const leaseAsksPerCallMax = 100;
