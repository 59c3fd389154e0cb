import {
  create,
  fromJson,
  type JsonValue,
  type JsonObject as MessageJson,
  toJsonString,
} from "@bufbuild/protobuf";
import { isServiceError, ServiceError, toServiceError } from "../../core/base/errors.js";
import { isLeanJson } from "../../core/base/json-count.js";
import type { LimitUnit } from "../../core/limits/limit.js";
import type { Header } from "../../core/limits/limit-headers.js";
import { type DescriptorVerdict, headerSeconds, type Verdict } from "../../core/limits/verdict.js";
import type { DecisionCounters } from "../../decide/rate-limit/counters.js";
import type { DecisionCall } from "../../decide/rate-limit/decision.js";
import type { PreparedQuery } from "../../decide/rate-limit/prepared-query.js";
import {
  descriptorCountMax,
  entryCountMax,
  type RateLimitQuery,
} from "../../decide/rate-limit/query.js";
import type { ShedMode } from "../../decide/rate-limit/shedding.js";
import { type HeaderValue, HeaderValueSchema } from "../../gen/envoy/config/core/v3/base_pb.js";
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
} from "../../gen/envoy/service/ratelimit/v3/rls_pb.js";
import type { Extras, ResponseExtras } from "./rls-extras.js";
import { requestTooLarge, type SentRequest, sentRequestOf, toQuery } from "./rls-request.js";

/** Decides a single query: a `Decider`. */
export interface Decides {
  /** Matches a query against the active policy, for reuse by identical calls if `isKept`. */
  prepare(query: RateLimitQuery, isKept: boolean): PreparedQuery;
  /** Whether a call must pass its complete query. Called once per call. Absent: never. */
  wantsQuery?(prepared: PreparedQuery): boolean;
  /** Decides one call and passes it the result. */
  ask(prepared: PreparedQuery, call: DecisionCall): void;
  /** Returns how to answer a call unread because memory is exhausted. Undefined: read it. */
  shed?(): ShedMode | undefined;
}

interface JsonParts {
  readonly decider: Decides;
  readonly counters: DecisionCounters;
  /** Creates the parts of responses besides their statuses. */
  readonly extras: ResponseExtras;
}

/** A decision as JSON. */
interface JsonAnswer {
  readonly isDenied: boolean;
  /** A RateLimitResponse in proto3 JSON. */
  readonly body: string;
}

/**
 * Decides a RateLimitRequest in proto3 JSON. Source: `POST /json` of envoyproxy/ratelimit.
 *
 * @throws ServiceError REQUEST_INVALID, REQUEST_TOO_LARGE, MEMORY_FULL, and what the decider throws
 */
export async function answerJson(
  body: string,
  { decider, counters, extras }: JsonParts,
): Promise<JsonAnswer> {
  const shedMode = decider.shed?.();
  if (shedMode !== undefined) return unreadAnswer(shedMode);
  const { query, asked } = decode(body, counters);
  const prepared = decider.prepare(query, false);
  const hits = query.descriptors.map((descriptor) => descriptor.hits);
  const verdict = await new Promise<Verdict>((decided, failed) => {
    decider.ask(prepared, {
      hits,
      deadlineMs: Number.POSITIVE_INFINITY,
      query: decider.wantsQuery?.(prepared) === true ? query : undefined,
      decided,
      failed,
    });
  });
  const response = toResponse(verdict);
  addExtras(response, extras.of({ prepared, verdict, asked }));
  const answer = toJsonString(RateLimitResponseSchema, response);
  return { isDenied: verdict.isDenied, body: `${answer}\n` };
}

function addExtras(response: RateLimitResponse, extras: Extras): void {
  const { headers, requestHeaders, body, metadata } = extras;
  response.responseHeadersToAdd = headers.map(toHeaderValue);
  response.requestHeadersToAdd = requestHeaders.map(toHeaderValue);
  if (body !== undefined) response.rawBody = Buffer.from(body, "utf8");
  // The library does not accept frozen objects.
  const copy: MessageJson = JSON.parse(JSON.stringify(metadata));
  if (Object.keys(metadata).length > 0) response.dynamicMetadata = copy;
}

function toHeaderValue({ name, value }: Header): HeaderValue {
  return create(HeaderValueSchema, { key: name, value });
}

/** Returns the response to a request that is not read. @throws ServiceError MEMORY_FULL */
function unreadAnswer(mode: ShedMode): JsonAnswer {
  if (mode === "error") throw new ServiceError("MEMORY_FULL");
  const isDenied = mode === "deny";
  const answer = toJsonString(RateLimitResponseSchema, toResponse({ isDenied, statuses: [] }));
  return { isDenied, body: `${answer}\n` };
}

/** A request, as a query and as it was sent. */
interface JsonRequest {
  readonly query: RateLimitQuery;
  readonly asked: SentRequest;
}

/**
 * Reads a RateLimitRequest in proto3 JSON.
 *
 * @throws ServiceError REQUEST_INVALID, REQUEST_TOO_LARGE
 */
export function readJsonRequest(body: string): JsonRequest {
  const asked = sentRequestOf(parse(body));
  return { query: toQuery(asked), asked };
}

function decode(body: string, counters: DecisionCounters): JsonRequest {
  try {
    return readJsonRequest(body);
  } catch (thrown) {
    counters.countFailure(toServiceError(thrown).code);
    throw thrown;
  }
}

const exampleBody = JSON.stringify({
  domain: "shop",
  descriptors: [{ entries: [{ key: "user", value: "a" }] }],
});

function parse(body: string): RateLimitRequest {
  let message: RateLimitRequest;
  try {
    if (!isLeanJson(body)) throw requestTooLarge();
    const value: JsonValue = JSON.parse(body);
    assertFew(value);
    message = fromJson(RateLimitRequestSchema, value);
  } catch (thrown) {
    if (isServiceError(thrown)) throw thrown;
    // The decoder's message quotes the body, so it is dropped.
    const words = `The body is not a RateLimitRequest in proto3 JSON, like ${exampleBody}.`;
    throw new ServiceError("REQUEST_INVALID", words);
  }
  const refund = message.descriptors.findIndex((descriptor) => descriptor.isNegativeHits);
  if (refund !== -1) {
    const words = `descriptors[${refund}].isNegativeHits: refunds are supported over gRPC only.`;
    throw new ServiceError("REQUEST_INVALID", words);
  }
  return message;
}

/** Checks the length of lists before a message is created for each of their elements. */
function assertFew(value: JsonValue): void {
  const descriptors = listIn(value, "descriptors");
  if (descriptors.length > descriptorCountMax) throw requestTooLarge();
  for (const descriptor of descriptors) {
    if (listIn(descriptor, "entries").length > entryCountMax + 1) throw requestTooLarge();
  }
}

function listIn(value: JsonValue, name: string): readonly JsonValue[] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [];
  const list = value[name];
  return Array.isArray(list) ? list : [];
}

/** Converts a verdict to a message. */
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
    // Envoy truncates to whole seconds in its headers, so callers would return too early.
    const seconds = BigInt(headerSeconds(durationUntilResetUs));
    message.durationUntilReset = { $typeName: "google.protobuf.Duration", seconds, nanos: 0 };
  }
  return message;
}

function code(isOver: boolean | undefined): RateLimitResponse_Code {
  if (isOver === undefined) return RateLimitResponse_Code.UNKNOWN;
  return isOver ? RateLimitResponse_Code.OVER_LIMIT : RateLimitResponse_Code.OK;
}
