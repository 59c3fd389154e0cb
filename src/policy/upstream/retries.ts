import { isSeq } from "yaml";
import type { Block } from "../text/block.js";
import type { DurationBounds } from "../text/quantities.js";
import { defaultRetries, defaultTimeouts } from "./default-upstream.js";
import type { RetryCondition, RetryPolicy, TimeoutPolicy } from "./upstream-policy.js";
import { backOffShape, retriesShape, timeoutsShape } from "./upstream-shapes.js";

/** The most tries after the first. */
const retriesMax = 10;

/** The bounds of `numRetries`. */
export const numRetriesBounds = { min: 1, max: retriesMax } as const;

/** The longest a request may take, and the longest wait between its tries: a day. */
export const requestMsMax = 86_400_000;

/** The bounds of waits between tries. */
export const tryTimeBounds: DurationBounds = { minMs: 1, maxMs: requestMsMax };

/** The bounds of what may also take for ever: 0. */
export const requestTimeBounds: DurationBounds = { minMs: 0, maxMs: requestMsMax };

/** The longest that a connection may take to be made: a minute. */
export const connectMsMax = 60_000;

/** The bounds of `connect`. */
export const connectTimeBounds: DurationBounds = { minMs: 1, maxMs: connectMsMax };

/** Statuses that one service's requests are tried again after. */
export const retriableCodesMax = 32;

/** The bounds of such a status: of an answer that says that something went wrong. */
export const retriableCodeBounds = { min: 400, max: 599 } as const;

/** Everything that may be tried again. Source: Envoy, "Router", x-envoy-retry-on. */
export const retryConditions = [
  "connectFailure",
  "refusedStream",
  "reset",
  "gatewayError",
  "5xx",
  "retriableStatus",
  "rateLimited",
] as const satisfies readonly RetryCondition[];

/** Reads `timeouts` of a service; what is left out is as usual. */
export function readTimeouts(service: Block): TimeoutPolicy {
  const block = service.block("timeouts", timeoutsShape);
  if (block === undefined) return defaultTimeouts;
  const requestMs = block.durationMs("request", defaultTimeouts.requestMs, requestTimeBounds);
  const maxStreamMs = block.durationMs("maxStreamDuration", undefined, tryTimeBounds);
  if (maxStreamMs !== undefined && maxStreamMs < requestMs) {
    const message = "a stream may not last as long as its request";
    block.refuseOrder(["maxStreamDuration"], message, "at least timeouts.request");
  }
  return {
    requestMs,
    maxStreamMs,
    maxConnectionMs: block.durationMs("maxConnectionDuration", undefined, tryTimeBounds),
    connectMs: block.durationMs("connect", defaultTimeouts.connectMs, connectTimeBounds),
    idleMs: block.durationMs("idle", defaultTimeouts.idleMs, requestTimeBounds),
  };
}

/** Reads `retries` of a service; undefined where it is left out: nothing is tried again. */
export function readRetries(service: Block, { requestMs }: TimeoutPolicy): RetryPolicy | undefined {
  const block = service.block("retries", retriesShape);
  if (block === undefined) return undefined;
  const on = block.words("retryOn", defaultRetries.on, retryConditions);
  const field = block.field("retryOn");
  const written = field && block.reader.contentOf(field);
  if (isSeq(written) && written.items.length === 0) {
    const message = '"retryOn" names nothing that is tried again';
    block.report("retryOn", { id: "HG125", message, expected: "one of its words at least" });
  }
  const perTryMs = block.durationMs("perTryTimeout", undefined, tryTimeBounds);
  if (perTryMs !== undefined && requestMs > 0 && perTryMs > requestMs) {
    const message = "a single try may take longer than the request with all its tries";
    block.refuseOrder(["perTryTimeout"], message, "at most timeouts.request");
  }
  const perTryIdleMs = block.durationMs("perTryIdleTimeout", undefined, tryTimeBounds);
  if (perTryIdleMs !== undefined && perTryMs !== undefined && perTryIdleMs >= perTryMs) {
    const message = "a try may be idle for as long as it may take";
    block.refuseOrder(["perTryIdleTimeout"], message, "less than perTryTimeout");
  }
  return {
    perTryIdleMs,
    hedging: readHedging(block, perTryMs),
    retriableStatusCodes: readStatusCodes(block, on),
    retriesMax: block.whole("numRetries", defaultRetries.retriesMax, numRetriesBounds),
    on,
    perTryMs,
    ...readBackOff(block),
    retryAfterMsMax: readRetryAfter(block, on),
  };
}

/** When another try begins beside one that goes on. */
export const hedgingWords = ["onPerTryTimeout"] as const;

function readHedging(block: Block, perTryMs: number | undefined): RetryPolicy["hedging"] {
  const field = block.field("hedging");
  if (field === undefined) return undefined;
  if (perTryMs === undefined && block.isLeftOut("perTryTimeout")) {
    const message = '"hedging" begins once a try takes too long, and nothing says how long';
    block.report("hedging", { id: "HG207", message, expected: "perTryTimeout beside it" });
  }
  const finding = { id: "HG133", what: "a time to begin another try" } as const;
  return block.reader.readChoice(field, hedgingWords, finding);
}

/** Statuses are tried again where both the word and the numbers say so. */
function readStatusCodes(block: Block, on: readonly RetryCondition[]): readonly number[] {
  const name = "retriableStatusCodes";
  const items = block.items(name, "a list of HTTP statuses", retriableCodesMax);
  const codes = items.flatMap((item) => block.reader.readWhole(item, retriableCodeBounds) ?? []);
  const isAsked = on.includes("retriableStatus");
  if (isAsked && block.isLeftOut(name)) {
    const message = '"retryOn" says retriableStatus, and no status is named';
    block.report("retryOn", { id: "HG207", message, expected: `${name}: [502] beside it` });
  }
  if (!isAsked && items.length > 0) {
    const message = `"${name}" are named, and no status is tried again`;
    block.report(name, { id: "HG207", message, expected: "retriableStatus in retryOn" });
  }
  return [...new Set(codes)];
}

function readBackOff(retries: Block): Pick<RetryPolicy, "backOffBaseMs" | "backOffMsMax"> {
  const usual = defaultRetries;
  const block = retries.block("backOff", backOffShape);
  const backOffBaseMs = block?.durationMs("base", undefined, tryTimeBounds) ?? usual.backOffBaseMs;
  const writtenMax = block?.durationMs("max", undefined, tryTimeBounds);
  if (writtenMax !== undefined && writtenMax < backOffBaseMs) {
    const message = "the longest wait is shorter than the first one";
    block?.refuseOrder(["max"], message, "at least base");
  }
  return { backOffBaseMs, backOffMsMax: writtenMax ?? Math.max(usual.backOffMsMax, backOffBaseMs) };
}

/** A refusal that names its wait is only waited for where refusals are tried again. */
function readRetryAfter(block: Block, on: readonly RetryCondition[]): number | undefined {
  const written = block.durationMs("maxRetryAfter", undefined, tryTimeBounds);
  const isAsked = on.includes("rateLimited");
  if (written !== undefined && !isAsked) {
    const message = '"maxRetryAfter" is of refusals, and they are not tried again';
    block.report("maxRetryAfter", { id: "HG207", message, expected: "rateLimited in retryOn" });
  }
  return isAsked ? (written ?? defaultRetryAfterMs) : written;
}

/** How long a refusal's Retry-After may be where it is waited for, in milliseconds. */
export const defaultRetryAfterMs = 1_000;
