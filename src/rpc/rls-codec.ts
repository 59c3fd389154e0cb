import { create, fromBinary } from "@bufbuild/protobuf";
import { costHitsMax } from "../core/bucket.js";
import { ServiceError } from "../core/errors.js";
import type { DescriptorEntry } from "../core/key.js";
import { drainTimeUsMax, type LimitUnit } from "../core/limit.js";
import {
  type DescriptorVerdict,
  headerSeconds,
  periodSeconds,
  type Verdict,
} from "../core/verdict.js";
import {
  type DescriptorQuery,
  descriptorCountMax,
  entryCountMax,
  type LimitOverride,
  type RateLimitQuery,
  textLengthMax,
} from "../decide/query.js";
import type {
  RateLimitDescriptor,
  RateLimitDescriptor_RateLimitOverride,
} from "../gen/envoy/extensions/common/ratelimit/v3/ratelimit_pb.js";
import {
  type RateLimitRequest,
  RateLimitRequestSchema,
  type RateLimitResponse,
  RateLimitResponse_Code,
  type RateLimitResponse_DescriptorStatus,
  RateLimitResponse_DescriptorStatusSchema,
  RateLimitResponse_RateLimit_Unit,
  RateLimitResponse_RateLimitSchema,
  RateLimitResponseSchema,
} from "../gen/envoy/service/ratelimit/v3/rls_pb.js";
import { RateLimitUnit } from "../gen/envoy/type/v3/ratelimit_unit_pb.js";

/** The messages of Envoy's RateLimitService, to and from what decisions are made of. */

/**
 * A request's bytes as a query.
 *
 * @throws ServiceError REQUEST_INVALID when they are no RateLimitRequest or break its contract
 */
export function decodeRateLimitRequest(bytes: Uint8Array): RateLimitQuery {
  let request: RateLimitRequest;
  try {
    request = fromBinary(RateLimitRequestSchema, bytes);
  } catch {
    // The decoder's words may quote the bytes, so they are dropped.
    throw invalid("The message is not a RateLimitRequest of envoy.service.ratelimit.v3.");
  }
  return toQuery(request);
}

/**
 * A decoded request as a query. Fields are named in errors, values never are.
 *
 * @throws ServiceError REQUEST_INVALID
 */
export function toQuery(request: RateLimitRequest): RateLimitQuery {
  const { domain, descriptors } = request;
  if (domain === "") throw invalid("domain is empty.");
  if (domain.length > textLengthMax) throw invalid(`domain is longer than ${textLengthMax}.`);
  if (descriptors.length === 0) throw invalid("descriptors is empty.");
  if (descriptors.length > descriptorCountMax) {
    throw invalid(`descriptors has more than ${descriptorCountMax} elements.`);
  }
  // Source: the field's comment in rls.proto: 0 is what an unset field looks like, and means 1.
  const hitsAddend = request.hitsAddend === 0 ? 1 : request.hitsAddend;
  return {
    domain,
    descriptors: descriptors.map((one, index) => toDescriptor(one, { index, hitsAddend })),
  };
}

interface Place {
  readonly index: number;
  /** The request's hits, for a descriptor that states none of its own. */
  readonly hitsAddend: number;
}

function toDescriptor(descriptor: RateLimitDescriptor, place: Place): DescriptorQuery {
  const { entries, limit } = descriptor;
  const name = `descriptors[${place.index}]`;
  if (entries.length === 0) throw invalid(`${name}.entries is empty.`);
  if (entries.length > entryCountMax) {
    throw invalid(`${name}.entries has more than ${entryCountMax} elements.`);
  }
  entries.forEach((entry, index) => {
    assertEntry(entry, `${name}.entries[${index}]`);
  });
  return {
    entries: entries.map(({ key, value }) => ({ key, value })),
    hits: toHits(descriptor, place),
    isRefund: descriptor.isNegativeHits,
    ...(limit === undefined ? {} : { override: toOverride(limit, `${name}.limit`) }),
  };
}

function assertEntry({ key, value }: DescriptorEntry, name: string): void {
  if (key === "") throw invalid(`${name}.key is empty.`);
  if (key.length + value.length > textLengthMax) {
    throw invalid(`${name} is longer than ${textLengthMax}, key and value together.`);
  }
}

/** A descriptor's own hits may be 0, which only looks; the request's never are. */
function toHits(descriptor: RateLimitDescriptor, { index, hitsAddend }: Place): number {
  if (descriptor.hitsAddend === undefined) return hitsAddend;
  if (descriptor.hitsAddend > BigInt(costHitsMax)) {
    throw invalid(`descriptors[${index}].hits_addend is above ${costHitsMax}.`);
  }
  return Number(descriptor.hitsAddend);
}

/** The units that a request may carry. Source: envoy.type.v3.RateLimitUnit (it has no WEEK). */
const overrideUnits: ReadonlyMap<RateLimitUnit, LimitUnit> = new Map([
  [RateLimitUnit.SECOND, "second"],
  [RateLimitUnit.MINUTE, "minute"],
  [RateLimitUnit.HOUR, "hour"],
  [RateLimitUnit.DAY, "day"],
  [RateLimitUnit.MONTH, "month"],
  [RateLimitUnit.YEAR, "year"],
]);

function toOverride(limit: RateLimitDescriptor_RateLimitOverride, name: string): LimitOverride {
  const unit = overrideUnits.get(limit.unit);
  if (unit === undefined) {
    throw invalid(`${name}.unit is none of SECOND, MINUTE, HOUR, DAY, MONTH, YEAR.`);
  }
  // 0 is what a multiplier that was never set decodes to in some clients.
  const unitMultiplier =
    limit.unitMultiplier === undefined || limit.unitMultiplier === 0 ? 1 : limit.unitMultiplier;
  if (periodSeconds(unit, unitMultiplier) * 1_000_000 > drainTimeUsMax) {
    throw invalid(`${name}.unit_multiplier makes a period above ten years.`);
  }
  return { hits: limit.requestsPerUnit, unit, unitMultiplier };
}

/** A limit that a request carries, in words. Example: `requests_per_unit:5 unit:DAY`. */
export function overrideText(limit: RateLimitDescriptor_RateLimitOverride): string {
  const text = `requests_per_unit:${limit.requestsPerUnit} unit:${RateLimitUnit[limit.unit]}`;
  const { unitMultiplier } = limit;
  return unitMultiplier === undefined ? text : `${text} unit_multiplier:${unitMultiplier}`;
}

/** A verdict as a message. */
export function toResponse(verdict: Verdict): RateLimitResponse {
  return create(RateLimitResponseSchema, {
    overallCode: code(verdict.isDenied),
    statuses: verdict.statuses.map(toStatus),
  });
}

const responseUnits: Readonly<Record<LimitUnit, RateLimitResponse_RateLimit_Unit>> = {
  second: RateLimitResponse_RateLimit_Unit.SECOND,
  minute: RateLimitResponse_RateLimit_Unit.MINUTE,
  hour: RateLimitResponse_RateLimit_Unit.HOUR,
  day: RateLimitResponse_RateLimit_Unit.DAY,
  week: RateLimitResponse_RateLimit_Unit.WEEK,
  month: RateLimitResponse_RateLimit_Unit.MONTH,
  year: RateLimitResponse_RateLimit_Unit.YEAR,
};

function toStatus(status: DescriptorVerdict): RateLimitResponse_DescriptorStatus {
  const { currentLimit, limitRemaining, durationUntilResetUs } = status;
  const message = create(RateLimitResponse_DescriptorStatusSchema, { code: code(status.isOver) });
  if (currentLimit !== undefined) {
    const { name, hits, unit, unitMultiplier } = currentLimit;
    message.currentLimit = create(RateLimitResponse_RateLimitSchema, {
      ...(name === undefined ? {} : { name }),
      requestsPerUnit: hits,
      unit: responseUnits[unit],
      ...(unitMultiplier === 1 ? {} : { unitMultiplier }),
    });
  }
  if (limitRemaining !== undefined) message.limitRemaining = limitRemaining;
  if (durationUntilResetUs !== undefined) {
    // Envoy cuts to whole seconds in its headers, which would send callers back too early.
    const seconds = BigInt(headerSeconds(durationUntilResetUs));
    message.durationUntilReset = { $typeName: "google.protobuf.Duration", seconds, nanos: 0 };
  }
  return message;
}

function code(isOver: boolean): RateLimitResponse_Code {
  return isOver ? RateLimitResponse_Code.OVER_LIMIT : RateLimitResponse_Code.OK;
}

function invalid(detail: string): ServiceError {
  return new ServiceError("REQUEST_INVALID", detail);
}
