import { fromJsonString, toJsonString } from "@bufbuild/protobuf";
import { ServiceError } from "../core/errors.js";
import type { Verdict } from "../core/verdict.js";
import type { DecisionCounters } from "../decide/counters.js";
import type { RateLimitQuery } from "../decide/query.js";
import {
  type RateLimitRequest,
  RateLimitRequestSchema,
  RateLimitResponseSchema,
} from "../gen/envoy/service/ratelimit/v3/rls_pb.js";
import { toQuery, toResponse } from "./rls-codec.js";

/** What decides a single query: a `Decider`. */
export interface Decides {
  /** @param deadlineMs when the caller stops waiting, monotonic; Infinity when it does not say */
  decide(query: RateLimitQuery, deadlineMs: number): Promise<Verdict>;
}

/** A decision as JSON. */
export interface JsonAnswer {
  readonly isDenied: boolean;
  /** A RateLimitResponse in proto3 JSON. */
  readonly body: string;
}

/**
 * Decides a RateLimitRequest in proto3 JSON. Source: `POST /json` of envoyproxy/ratelimit.
 *
 * @throws ServiceError REQUEST_INVALID, and what the decider throws
 */
export async function answerJson(
  body: string,
  { decider, counters }: { readonly decider: Decides; readonly counters: DecisionCounters },
): Promise<JsonAnswer> {
  const query = decodeQuery(body, counters);
  const verdict = await decider.decide(query, Number.POSITIVE_INFINITY);
  const answer = toJsonString(RateLimitResponseSchema, toResponse(verdict));
  return { isDenied: verdict.isDenied, body: `${answer}\n` };
}

function decodeQuery(body: string, counters: DecisionCounters): RateLimitQuery {
  try {
    return toQuery(parse(body));
  } catch (thrown) {
    counters.countFailure("REQUEST_INVALID");
    throw thrown;
  }
}

const exampleBody = JSON.stringify({
  domain: "shop",
  descriptors: [{ entries: [{ key: "user", value: "a" }] }],
});

function parse(body: string): RateLimitRequest {
  try {
    return fromJsonString(RateLimitRequestSchema, body);
  } catch {
    // The decoder's words quote the body, so they are dropped.
    const words = `The body is not a RateLimitRequest in proto3 JSON, like ${exampleBody}.`;
    throw new ServiceError("REQUEST_INVALID", words);
  }
}
