import type { DescriptorEntry } from "../../core/limits/key.js";
import type { LimitUnit } from "../../core/limits/limit.js";

/** The input of a decision, independent of the wire format. Source: envoy RateLimitRequest. */
export interface RateLimitQuery {
  /** Never empty. */
  readonly domain: string;
  /** 1 to `descriptorCountMax`. */
  readonly descriptors: readonly DescriptorQuery[];
  /** Set for Headgate's own queries: their limits apply in any domain. Absent: a caller's query. */
  readonly isOwn?: true;
  /** Whether the caller can delay requests until they fit (`over: delay`). Absent: it cannot. */
  readonly canDelay?: true;
}

/** One descriptor of a query. */
export interface DescriptorQuery {
  /**
   * No rule matches a descriptor with more than `entryCountMax` entries. Entries beyond that may be
   * omitted.
   */
  readonly entries: readonly DescriptorEntry[];
  /** Hits to charge or to refund; 0 peeks. At most `costHitsMax`. */
  readonly hits: number;
  readonly isRefund: boolean;
  /** A limit that the request carries, in place of the policy's. */
  readonly override?: LimitOverride;
}

/** Source: envoy.extensions.common.ratelimit.v3.RateLimitDescriptor.RateLimitOverride. */
export interface LimitOverride {
  /** Hits per period, 0 to 2^32 - 1. */
  readonly hits: number;
  /** Absent: as many as `hits`. */
  readonly burst?: number;
  readonly unit: LimitUnit;
  /** At least 1. */
  readonly unitMultiplier: number;
}

/** Maximum number of descriptors in a query. */
export const descriptorCountMax = 128;

/** Maximum number of entries that a rule can match: the length of the longest path. */
export const entryCountMax = 32;

/**
 * Maximum length of an entry that an operator can name: key and value together, in UTF-16 units.
 */
export const textLengthMax = 16_384;

/**
 * The cost of a call: the same for each descriptor, or one number per descriptor. Integers, 0 to
 * `costHitsMax`.
 */
export type Hits = number | readonly number[];
