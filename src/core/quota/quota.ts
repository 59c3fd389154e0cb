import type { ErrorCode } from "../base/errors.js";
import type { Limit } from "../limits/limit.js";

/**
 * Quotas: limits that Envoys enforce by themselves, by assignments that are renewed all the time
 * (RLQS). What is common to those who divide a quota, keep it in the store, and speak with Envoys.
 *
 * - bucket: what an Envoy counts together, named by a map of entries
 * - holder: one bucket on one stream; what has a share
 * - pool: one limit, or several that are charged together, and all holders that reach it
 * - assignment: what a holder was told that it may admit, and for how long
 * - lease: what one replica may hand out of a pool, until it is over
 *
 * Rates are in micro-hits a second (1 hit a second: 1,000,000 uHz), whole numbers from 0 below
 * 2^53. All times are those of one replica's monotonic clock, in milliseconds.
 */

/** The entry of a bucket id that names the quota; a quota's own entries come after it. */
export const quotaBucketKey = "quota";

/** The entry of a bucket id that names its class; no part of a bucket may have this key. */
export const quotaClassKey = "class";

/** Micro-hits a second in a hit a second. */
export const microHzPerHz = 1_000_000;

/** What an assignment is good for when a quota does not say it. */
export const defaultQuotaTtlMs = 10_000;

/** The shortest time of an assignment; Envoy's whole seconds, of which one may be lost. */
export const quotaTtlMsMin = 2_000;

/** What an Envoy is told where nothing limits it. */
export const unlimitedQuotaTtlMs = 60_000;

/** How often an Envoy reports, whatever it is told. Source: measured, Envoy 1.40. */
export const quotaReportMs = 5_000;

/** How long a lease outlives the assignments that are made from it. */
export const quotaLeaseSlackMs = 5_000;

/**
 * What an Envoy may admit of one bucket, by itself. There are only those kinds that Envoy 1.40
 * enforces.
 */
export type QuotaAssignment =
  /** Everything or nothing, at the wire `blanket_rule`. */
  | { readonly kind: "blanket"; readonly rule: "allow" | "deny"; readonly ttlMs: number }
  /**
   * A token bucket that is full when an Envoy makes it: the first one, after a blanket rule, after
   * the last one is over. The same one once more goes on as it is, and another one in its place has
   * what is left, cut to its own tokens. Source: measured, Envoy 1.40.
   */
  | {
      readonly kind: "bucket";
      /** From 1. */
      readonly rateMicroHz: number;
      /** A whole number from 1, to 2^32 - 1. */
      readonly tokensMax: number;
      /** Whole seconds, from `quotaTtlMsMin`. */
      readonly ttlMs: number;
    };

/** What an Envoy says of one bucket; all are whole numbers from 0. */
export interface QuotaUsage {
  readonly allowedHits: number;
  readonly deniedHits: number;
  /** Since its last report, by its own clock; 0 in the first one. */
  readonly elapsedMs: number;
}

/** Names a holder within one `QuotaHolders`; may name another one after it was forgotten. */
export type QuotaHolder = number & { readonly quotaHolderBrand: never };

/** What a pool is to say to one holder. */
export type QuotaChange =
  | {
      readonly kind: "assign";
      readonly holder: QuotaHolder;
      readonly assignment: QuotaAssignment;
    }
  /** Nobody used the bucket for long: Envoy drops it and asks again. The holder is gone. */
  | { readonly kind: "abandon"; readonly holder: QuotaHolder };

/** The part of a limit that a pool goes by. A limit of no hits denies everything. */
export type QuotaLimit = Pick<Limit, "hits" | "periodUs" | "burst">;

/** What a pool is told by the policy, overrides and freezes. */
export interface QuotaPoolSettings {
  /**
   * `limited`: within all the limits. `counted`: everything passes and is counted (shadow).
   * `unlimited`: everything passes. `denied`: nothing does (rate 0, frozen).
   */
  readonly mode: "limited" | "counted" | "unlimited" | "denied";
  /** Those that a hit is charged to; none where the mode is not `limited` or `counted`. */
  readonly limits: readonly QuotaLimit[];
  /** Whole seconds from `quotaTtlMsMin`; default `defaultQuotaTtlMs`. */
  readonly ttlMs: number;
  /** The part of the rate that is kept for callers of the same limits: 0 to 0.9. */
  readonly callsShare: number;
}

/** How many Envoys of one identity reach a pool: of this replica, or of the others. */
export interface QuotaCrowd {
  /** A digest, the same in all replicas. */
  readonly identity: string;
  readonly count: number;
}

/** The most identities that a claim tells of: those with the most Envoys. */
export const quotaCrowdsMax = 32;

/** A weight of 1, as claims have it. */
export const claimedWeightUnit = 1_000_000;

/** What a replica says of a pool to the others, and asks of it. Weights are whole numbers. */
export interface QuotaClaim {
  /** What those holders want who want little, by their weights. */
  readonly metMicroHz: number;
  /** What its other holders want. */
  readonly hungryMicroHz: number;
  /** The sum of these holders' weights; 0 where there are none. */
  readonly hungryWeight: number;
  /** The sum of all holders' weights: what is lent is divided by it. */
  readonly weight: number;
  /** The most that its holders may have in force now, or it may still hand out by its lease. */
  readonly heldMicroHz: number;
  /** What may be handed out by all replicas, as this one knows the limits' levels. */
  readonly ceilingMicroHz: number;
  /** Whose Envoys they are; at most `quotaCrowdsMax`, no identity twice. */
  readonly crowds: readonly QuotaCrowd[];
}

/** What a replica may hand out of a pool. */
export interface QuotaLease {
  readonly rateMicroHz: number;
  /** When it is over, counted from when it was asked for. */
  readonly untilMs: number;
  /** What other replicas have of the identities that were claimed for. */
  readonly elsewhere: readonly QuotaCrowd[];
}

/** What is known of one holder, for people. */
export interface QuotaHolderState {
  readonly holder: QuotaHolder;
  readonly weight: number;
  /** What it would use: admitted and denied, by its last report. */
  readonly demandMicroHz: number;
  /** What it was told; undefined before the first time. */
  readonly assignment: QuotaAssignment | undefined;
  /** The most that it may have in force now; more than it was told while it may not know yet. */
  readonly heldMicroHz: number;
  /** When it was heard of last. */
  readonly reportedMs: number;
  /** Whether its stream is closed: it counts until its time is up. */
  readonly isLeft: boolean;
}

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
