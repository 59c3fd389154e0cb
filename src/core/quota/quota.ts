import type { ErrorCode } from "../base/errors.js";
import type { Limit } from "../limits/limit.js";

/**
 * Quotas: limits that Envoys enforce themselves, by assignments that are renewed continuously
 * (RLQS). These types are shared by the modules that divide a quota, store it, and communicate with
 * Envoys.
 *
 * - bucket: what an Envoy counts together, identified by a map of entries
 * - holder: one bucket on one stream, which has a share
 * - pool: one limit, or several that are charged together, and all holders that share it
 * - assignment: what a holder may admit, and for how long
 * - lease: what one replica may assign of a pool, until it ends
 *
 * Rates are in micro-hits per second (1 hit per second: 1,000,000 uHz), integers from 0 to below
 * 2^53. All times are those of one replica's monotonic clock, in milliseconds.
 */

/** The entry of a bucket id that names the quota. A quota's own entries follow it. */
export const quotaBucketKey = "quota";

/** The entry of a bucket id that names its class. No part of a bucket may use this key. */
export const quotaClassKey = "class";

/** Micro-hits per second in one hit per second. */
export const microHzPerHz = 1_000_000;

/** The default time to live of an assignment. */
export const defaultQuotaTtlMs = 10_000;

/** Minimum time to live of an assignment. Envoy uses whole seconds and may lose one of them. */
export const quotaTtlMsMin = 2_000;

/** The time to live of an assignment without a limit. */
export const unlimitedQuotaTtlMs = 60_000;

/** Envoy's report interval, which is not configurable. Source: measured, Envoy 1.40. */
export const quotaReportMs = 5_000;

/** How long a lease outlives the assignments that are made from it. */
export const quotaLeaseSlackMs = 5_000;

/** What an Envoy may admit for one bucket. Contains only the kinds that Envoy 1.40 enforces. */
export type QuotaAssignment =
  /** Everything or nothing; `blanket_rule` on the wire. */
  | { readonly kind: "blanket"; readonly rule: "allow" | "deny"; readonly ttlMs: number }
  /**
   * A token bucket. It is full when Envoy creates it: the first one, one after a blanket rule, and
   * one after the last has ended. Sending the same bucket again keeps its tokens. A different
   * bucket takes over the remaining tokens, up to its own maximum. Source: measured, Envoy 1.40.
   */
  | {
      readonly kind: "bucket";
      /** At least 1. */
      readonly rateMicroHz: number;
      /** An integer, 1 to 2^32 - 1. */
      readonly tokensMax: number;
      /** Whole seconds, at least `quotaTtlMsMin`. */
      readonly ttlMs: number;
    };

/** An Envoy's report of one bucket. All values are integers, at least 0. */
export interface QuotaUsage {
  readonly allowedHits: number;
  readonly deniedHits: number;
  /** Since its last report, by its own clock; 0 in the first report. */
  readonly elapsedMs: number;
}

/** Identifies a holder within one `QuotaHolders`. Reused after the holder was forgotten. */
export type QuotaHolder = number & { readonly quotaHolderBrand: never };

/** A message of a pool for one holder. */
export type QuotaChange =
  | {
      readonly kind: "assign";
      readonly holder: QuotaHolder;
      readonly assignment: QuotaAssignment;
    }
  /**
   * The bucket was idle for too long. Envoy drops it and asks again when it is used. The holder is
   * gone.
   */
  | { readonly kind: "abandon"; readonly holder: QuotaHolder };

/** The part of a limit that a pool uses. A limit of 0 hits denies everything. */
export type QuotaLimit = Pick<Limit, "hits" | "periodUs" | "burst">;

/** The settings of a pool, from the policy, overrides and freezes. */
export interface QuotaPoolSettings {
  /**
   * `limited`: enforce all limits. `counted`: allow everything and count it (shadow). `unlimited`:
   * allow everything. `denied`: allow nothing (rate 0, frozen).
   */
  readonly mode: "limited" | "counted" | "unlimited" | "denied";
  /** The limits that a hit is charged to. Empty unless the mode is `limited` or `counted`. */
  readonly limits: readonly QuotaLimit[];
  /** Whole seconds, at least `quotaTtlMsMin`. Default `defaultQuotaTtlMs`. */
  readonly ttlMs: number;
  /** The fraction of the rate that is reserved for callers of the same limits: 0 to 0.9. */
  readonly callsShare: number;
}

/** The number of Envoys of one identity in a pool, at this replica or at the others. */
export interface QuotaCrowd {
  /** A digest, the same at all replicas. */
  readonly identity: string;
  readonly count: number;
}

/** Maximum number of identities in a claim. The ones with the most Envoys are included. */
export const quotaCrowdsMax = 32;

/** A weight of 1 in a claim. */
export const claimedWeightUnit = 1_000_000;

/** A replica's report about a pool, and its request for a lease. Weights are integers. */
export interface QuotaClaim {
  /** The demand of holders with a small demand for their weight. */
  readonly metMicroHz: number;
  /** The demand of the other holders. */
  readonly hungryMicroHz: number;
  /** The combined weight of these other holders; 0 if there are none. */
  readonly hungryWeight: number;
  /** The combined weight of all holders, by which unclaimed rate is lent. */
  readonly weight: number;
  /** The most that its holders may have active, or that it may still assign from its lease. */
  readonly heldMicroHz: number;
  /** What all replicas may assign together, judging by the levels that this one knows. */
  readonly ceilingMicroHz: number;
  /** The identities of the Envoys, each one once. At most `quotaCrowdsMax`. */
  readonly crowds: readonly QuotaCrowd[];
}

/** What a replica may assign of a pool. */
export interface QuotaLease {
  readonly rateMicroHz: number;
  /** When the lease ends, measured from when it was requested. */
  readonly untilMs: number;
  /** The Envoys that the identities in the claim have at other replicas. */
  readonly elsewhere: readonly QuotaCrowd[];
}

/** The state of one holder, for display. */
export interface QuotaHolderState {
  readonly holder: QuotaHolder;
  readonly weight: number;
  /** The rate that it would use, admitted and denied, by its last report. */
  readonly demandMicroHz: number;
  /** Its last assignment. Undefined before the first one. */
  readonly assignment: QuotaAssignment | undefined;
  /** The highest rate that may be active. Above the assignment until the Envoy has received it. */
  readonly heldMicroHz: number;
  /** The time of its last report. */
  readonly reportedMs: number;
  /** Whether its stream is closed. It counts until its assignment has ended. */
  readonly isLeft: boolean;
}

/** A replica's claim of one pool, and the duration of the lease. */
export interface QuotaLeaseAsk {
  /** Identifies the pool at all replicas. Contains no text from callers. */
  readonly pool: string;
  readonly claim: QuotaClaim;
  /** Duration of the lease in milliseconds, at least 1. */
  readonly leaseMs: number;
}

/** The response to a claim. */
export type QuotaLeaseAnswer =
  | { readonly kind: "leased"; readonly lease: QuotaLease }
  /** A later claim of this replica was processed before this one. */
  | { readonly kind: "overtaken" }
  /** The result is unknown. The previous lease stays valid until it ends. */
  | { readonly kind: "failed"; readonly code: ErrorCode };

/**
 * Divides pools among replicas. The active leases of a pool together never exceed what the claims
 * allow to be assigned of it. If that falls below what is held already, no lease grows until the
 * sum fits again.
 */
export interface LeasesQuotas {
  /** Returns one response per claim, in order. Never rejects. */
  exchange(asks: readonly QuotaLeaseAsk[]): Promise<readonly QuotaLeaseAnswer[]>;
}

/** Maximum number of pools per store call, so that no call takes long. */
export const leaseAsksPerCallMax = 100;
