import type { DescriptorEntry } from "../../core/limits/key.js";
import type { LimitUnit } from "../../core/limits/limit.js";

/** A question for a decision, free of any wire format. Source: envoy RateLimitRequest. */
export interface RateLimitQuery {
  /** Never empty. */
  readonly domain: string;
  /** 1 to `descriptorCountMax`. */
  readonly descriptors: readonly DescriptorQuery[];
}

/** One descriptor of a query. */
export interface DescriptorQuery {
  /**
   * More than `entryCountMax` are a descriptor that no rule reaches; those behind them may be left
   * out.
   */
  readonly entries: readonly DescriptorEntry[];
  /** Hits to take, or to give back; 0 peeks. At most `costHitsMax`. */
  readonly hits: number;
  readonly isRefund: boolean;
  /** A limit that the request carries itself, in place of the policy's. */
  readonly override?: LimitOverride;
}

/** Source: envoy.extensions.common.ratelimit.v3.RateLimitDescriptor.RateLimitOverride. */
export interface LimitOverride {
  /** Hits a period, 0 to 2^32 - 1; also the burst. */
  readonly hits: number;
  readonly unit: LimitUnit;
  /** 1 or more. */
  readonly unitMultiplier: number;
}

/** The most descriptors of one query. */
export const descriptorCountMax = 128;

/** The most entries of a descriptor that a rule may reach: the longest path of one. */
export const entryCountMax = 32;

/** The most UTF-16 units of an entry's key and value together that operators may name. */
export const textLengthMax = 16_384;

/**
 * How many hits a call asks for: the same for each descriptor, or one number a descriptor. Whole,
 * 0 to `costHitsMax`.
 */
export type Hits = number | readonly number[];
