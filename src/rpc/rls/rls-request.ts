import { ServiceError } from "../../core/base/errors.js";
import { costHitsMax } from "../../core/limits/bucket.js";
import type { DescriptorEntry } from "../../core/limits/key.js";
import { drainTimeUsMax, type LimitUnit } from "../../core/limits/limit.js";
import { periodSeconds } from "../../core/limits/verdict.js";
import {
  type DescriptorQuery,
  descriptorCountMax,
  entryCountMax,
  type LimitOverride,
  type RateLimitQuery,
} from "../../decide/rate-limit/query.js";
import type { RateLimitRequest } from "../../gen/envoy/service/ratelimit/v3/rls_pb.js";
import type { RateLimitUnit } from "../../gen/envoy/type/v3/ratelimit_unit_pb.js";

/** A RateLimitRequest as it was sent. Source: envoy.service.ratelimit.v3.RateLimitRequest. */
export interface SentRequest {
  readonly domain: string;
  /** At most `descriptorCountMax`. */
  readonly descriptors: readonly SentDescriptor[];
  /** 0 if it is not set. */
  readonly hitsAddend: number;
}

/** Source: envoy.extensions.common.ratelimit.v3.RateLimitDescriptor. */
export interface SentDescriptor {
  /** At most `entryCountMax` and one more, which makes it longer than the path of any rule. */
  readonly entries: readonly DescriptorEntry[];
  readonly ownHits: number | undefined;
  readonly isRefund: boolean;
  readonly limit: SentLimit | undefined;
}

/** Source: RateLimitDescriptor.RateLimitOverride. */
export interface SentLimit {
  readonly requestsPerUnit: number;
  readonly unit: RateLimitUnit;
  readonly unitMultiplier: number | undefined;
}

/**
 * Converts a request to a query. Nothing that a caller of Envoy can choose is an error: values may
 * have any length and any bytes, and hits are capped at the maximum that can be counted. Errors
 * name fields, never values.
 *
 * @throws ServiceError REQUEST_INVALID for what no Envoy sends: no domain, no descriptors, an entry
 *   without a key, a limit without a unit; REQUEST_TOO_LARGE
 */
export function toQuery({ domain, descriptors, hitsAddend }: SentRequest): RateLimitQuery {
  if (domain === "") throw invalid("domain is empty.");
  if (descriptors.length === 0) throw invalid("descriptors is empty.");
  // Source: the field's comment in rls.proto: an unset field also reads as 0, and means 1.
  const requestHits = hitsAddend === 0 ? 1 : hitsAddend;
  return {
    domain,
    descriptors: descriptors.map(
      ({ entries, ownHits = requestHits, isRefund, limit }, index): DescriptorQuery => {
        assertKeys(entries, index);
        const hits = Math.min(ownHits, costHitsMax);
        if (limit === undefined) return { entries, hits, isRefund };
        // If entries were cut off, two callers could have the same ones.
        if (entries.length > entryCountMax) throw requestTooLarge();
        return { entries, hits, isRefund, override: toOverride(limit, index) };
      },
    ),
  };
}

function assertKeys(entries: readonly DescriptorEntry[], index: number): void {
  for (let i = 0; i < entries.length; i += 1) {
    if (entries[i]?.key === "") throw invalid(`descriptors[${index}].entries[${i}].key is empty.`);
  }
}

/**
 * The units of limits that requests carry, by their enum numbers.
 *
 * Source: envoy.type.v3.RateLimitUnit, which has no WEEK.
 */
const overrideUnits: readonly (LimitUnit | undefined)[] = [
  undefined,
  "second",
  "minute",
  "hour",
  "day",
  "month",
  "year",
];

function toOverride(limit: SentLimit, index: number): LimitOverride {
  const unit = overrideUnits[limit.unit];
  if (unit === undefined) {
    const units = "SECOND, MINUTE, HOUR, DAY, MONTH, YEAR";
    throw invalid(`descriptors[${index}].limit.unit is not one of ${units}.`);
  }
  // In some clients, a multiplier that was never set decodes to 0.
  const multiplier = limit.unitMultiplier ?? 0;
  const longest = Math.floor(drainTimeUsMax / 1_000_000 / periodSeconds(unit, 1));
  const unitMultiplier = Math.min(Math.max(1, multiplier), longest);
  return { hits: limit.requestsPerUnit, unit, unitMultiplier };
}

/** Formats a limit that a request carries. Example: `requests_per_unit:5 unit:DAY`. */
export function carriedLimitText({ requestsPerUnit, unit, unitMultiplier }: SentLimit): string {
  const name = overrideUnits[unit]?.toUpperCase() ?? "UNKNOWN";
  const text = `requests_per_unit:${requestsPerUnit} unit:${name}`;
  return unitMultiplier === undefined ? text : `${text} unit_multiplier:${unitMultiplier}`;
}

/**
 * Converts a message that the library has decoded.
 *
 * @throws ServiceError REQUEST_TOO_LARGE
 */
export function sentRequestOf({ domain, descriptors, hitsAddend }: RateLimitRequest): SentRequest {
  if (descriptors.length > descriptorCountMax) throw requestTooLarge();
  return {
    domain,
    hitsAddend,
    descriptors: descriptors.map(
      ({ entries, hitsAddend: ownHits, isNegativeHits, limit }): SentDescriptor => ({
        entries: entries.slice(0, entryCountMax + 1).map(({ key, value }) => ({ key, value })),
        ownHits: ownHits === undefined ? undefined : Number(ownHits),
        isRefund: isNegativeHits,
        limit: limit && sentLimitOf(limit),
      }),
    ),
  };
}

function sentLimitOf(limit: CarriedLimit): SentLimit {
  const { requestsPerUnit, unit, unitMultiplier } = limit;
  return { requestsPerUnit, unit, unitMultiplier };
}

type CarriedLimit = NonNullable<RateLimitRequest["descriptors"][number]["limit"]>;

/** Returns the error for a request that asks more than is decided. */
export function requestTooLarge(): ServiceError {
  return new ServiceError("REQUEST_TOO_LARGE");
}

function invalid(detail: string): ServiceError {
  return new ServiceError("REQUEST_INVALID", detail);
}
