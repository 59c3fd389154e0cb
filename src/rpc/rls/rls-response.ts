import { create } from "@bufbuild/protobuf";
import type { LimitUnit } from "../../core/limits/limit.js";
import { type DescriptorVerdict, headerSeconds, type Verdict } from "../../core/limits/verdict.js";
import {
  type RateLimitResponse,
  RateLimitResponse_Code,
  type RateLimitResponse_DescriptorStatus,
  RateLimitResponse_DescriptorStatusSchema,
  RateLimitResponse_RateLimit_Unit,
  RateLimitResponse_RateLimitSchema,
  RateLimitResponseSchema,
} from "../../gen/envoy/service/ratelimit/v3/rls_pb.js";

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

function code(isOver: boolean | undefined): RateLimitResponse_Code {
  if (isOver === undefined) return RateLimitResponse_Code.UNKNOWN;
  return isOver ? RateLimitResponse_Code.OVER_LIMIT : RateLimitResponse_Code.OK;
}
