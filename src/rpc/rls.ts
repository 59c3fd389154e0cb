import type { Clock } from "../core/clock.js";
import type { Verdict } from "../core/verdict.js";
import type { DecisionCounters } from "../decide/counters.js";
import type { RateLimitQuery } from "../decide/query.js";
import type { CallContext, ServiceHandlers } from "../wire/service.js";
import { decodeRateLimitRequest } from "./rls-codec.js";
import { RateLimitResponseEncoder } from "./rls-encoder.js";

/** What decides: a `Decider`. */
export interface Decides {
  /** @param deadlineMs when the caller stops waiting, monotonic; Infinity when it does not say */
  decide(query: RateLimitQuery, deadlineMs: number): Promise<Verdict>;
}

/** What the service is made of. */
export interface RateLimitServiceParts {
  readonly decider: Decides;
  readonly clock: Clock;
  /** Counts what is refused before anybody decides. */
  readonly counters: DecisionCounters;
}

/** The service's full name. Source: envoy/service/ratelimit/v3/rls.proto. */
const rateLimitServiceName = "envoy.service.ratelimit.v3.RateLimitService";

/**
 * Envoy's RateLimitService: bytes in, a decision, bytes out.
 *
 * Calls reject with `ServiceError` REQUEST_INVALID for what breaks the contract, and with what the
 * decider throws.
 */
export function createRateLimitService(parts: RateLimitServiceParts): ServiceHandlers {
  const { decider, clock, counters } = parts;
  const encoder = new RateLimitResponseEncoder();
  const handle = async (request: Uint8Array, call: CallContext): Promise<Uint8Array> => {
    const deadlineMs = callerDeadlineMs(call, clock);
    const verdict = await decider.decide(decode(request, counters), deadlineMs);
    return encoder.encode(verdict);
  };
  return {
    name: rateLimitServiceName,
    methods: [{ kind: "unary", name: "ShouldRateLimit", handle }],
  };
}

function decode(request: Uint8Array, counters: DecisionCounters): RateLimitQuery {
  try {
    return decodeRateLimitRequest(request);
  } catch (thrown) {
    counters.countFailure("REQUEST_INVALID");
    throw thrown;
  }
}

/** How Envoy states the time it waits when it sends no grpc-timeout. Source: Envoy's router. */
const expectedTimeoutField = "x-envoy-expected-rq-timeout-ms";

/** Whole milliseconds of at most nine digits (11 days); anything else is not Envoy's. */
const wholeMs = /^[1-9][0-9]{0,8}$/;

/** The earlier of the two deadlines a caller may state; Infinity when it states none. */
function callerDeadlineMs(call: CallContext, clock: Clock): number {
  const text = call.metadata(expectedTimeoutField);
  if (text === undefined || !wholeMs.test(text)) return call.deadlineMs;
  return Math.min(call.deadlineMs, clock.monotonicMs() + Number(text));
}
