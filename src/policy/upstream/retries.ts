import { isSeq } from "yaml";
import type { Block } from "../text/block.js";
import { duration, readBy, whole, words } from "../text/form.js";
import { field, inner, items, object, type ReadBlock, wordList } from "../text/object.js";
import type { DurationBounds } from "../text/quantities.js";

/** Maximum number of tries after the first. */
const retriesMax = 10;

/** The bounds of `numRetries`. */
const numRetriesBounds = { min: 1, max: retriesMax } as const;

/** Maximum time of a request, and of a wait between its tries: a day. */
export const requestMsMax = 86_400_000;

/** The bounds of waits between tries. */
export const tryTimeBounds: DurationBounds = { minMs: 1, maxMs: requestMsMax };

/** Bounds of times that may be unlimited: 0. */
export const requestTimeBounds: DurationBounds = { minMs: 0, maxMs: requestMsMax };

/** Maximum time to establish a connection: a minute. */
export const connectMsMax = 60_000;

/** The bounds of `connect`. */
const connectTimeBounds: DurationBounds = { minMs: 1, maxMs: connectMsMax };

/** Maximum number of statuses of one service that are retried. */
const retriableCodesMax = 32;

/** Bounds of such a status: an error status. */
const retriableCodeBounds = { min: 400, max: 599 } as const;

/** All conditions for a retry. Source: Envoy, "Router", x-envoy-retry-on. */
const retryConditions = [
  "connectFailure",
  "refusedStream",
  "reset",
  "gatewayError",
  "5xx",
  "retriableStatus",
  "rateLimited",
] as const;

/** `timeouts`. */
export const timeouts = object(
  { title: "timeouts", docs: "Timeouts of requests, connections and streams." },
  {
    request: field(
      duration(requestTimeBounds),
      "The timeout of a request with its retries. 0s: no timeout, as streams need it.",
      { larger: "different", as: "requestMs", default: 15_000 },
    ),
    connect: field(duration(connectTimeBounds), "The timeout to establish a connection.", {
      larger: "different",
      as: "connectMs",
      default: 250,
    }),
    idle: field(duration(requestTimeBounds), "The idle timeout of a stream. 0s: no timeout.", {
      larger: "different",
      as: "idleMs",
    }),
    maxStreamDuration: field(
      duration(tryTimeBounds),
      "The maximum duration of a stream, active or idle, including upgraded " +
        "connections. Default: no limit.",
      { larger: "different", as: "maxStreamMs" },
    ),
    maxConnectionDuration: field(
      duration(tryTimeBounds),
      "The maximum duration of a connection to the service. It then takes no more " +
        "requests. Default: no limit.",
      { larger: "different", as: "maxConnectionMs" },
    ),
  },
  {
    data: (read) => read,
    check(block, { requestMs, maxStreamMs = requestMs }) {
      if (maxStreamMs >= requestMs) return;
      const message = "a stream may not last as long as its request";
      block.refuseOrder(["maxStreamDuration"], message, "at least timeouts.request");
    },
  },
);

const [backOffBaseMs, backOffMsMax] = [25, 250];

const backOff = object(
  { title: "a backOff", docs: "Exponential backoff between tries, with jitter." },
  {
    base: field(duration(tryTimeBounds), "The first wait.", {
      larger: "different",
      as: "backOffBaseMs",
      default: backOffBaseMs,
    }),
    max: field(duration(tryTimeBounds), "The longest wait between attempts.", {
      larger: "different",
      as: "backOffMsMax",
      dependentDefault: backOffMsMax,
    }),
  },
  {
    data: ({ backOffBaseMs: baseMs, backOffMsMax: msMax }) => ({
      backOffBaseMs: baseMs,
      backOffMsMax: msMax ?? Math.max(backOffMsMax, baseMs),
    }),
    check(block, { backOffBaseMs: baseMs, backOffMsMax: msMax }) {
      if (msMax >= baseMs) return;
      const message = "the longest wait is shorter than the first one";
      block.refuseOrder(["max"], message, "at least base");
    },
  },
);

const hedgingWords = ["onPerTryTimeout"] as const;

const hedging = readBy(words(...hedgingWords), (reader, place) =>
  reader.readChoice(place, hedgingWords, { id: "HG133", what: "a time to begin another try" }),
);

/** Default maximum Retry-After of a refusal that is waited for, in milliseconds. */
const retryAfterMs = 1_000;

/** `retries`. */
export const retries = object(
  { title: "retries", docs: "Which requests are retried, and how. Default: none." },
  {
    numRetries: field(whole(numRetriesBounds), "Maximum number of retries.", {
      larger: "looser",
      as: "retriesMax",
      default: 2,
    }),
    retryOn: field(
      wordList(retryConditions, 1),
      "Conditions for a retry. Default: connectFailure, refusedStream and reset, " +
        "where the service has certainly not started.",
      { as: "on", default: ["connectFailure", "refusedStream", "reset"] },
    ),
    retriableStatusCodes: field(
      items(whole(retriableCodeBounds), {
        expected: "a list of HTTP statuses",
        max: retriableCodesMax,
      }),
      "The statuses that retriableStatus in `retryOn` refers to, such as 429 or 502.",
      { default: [] },
    ),
    perTryTimeout: field(duration(tryTimeBounds), "The timeout of one try.", {
      larger: "different",
      as: "perTryMs",
    }),
    perTryIdleTimeout: field(duration(tryTimeBounds), "The idle timeout of one try.", {
      larger: "different",
      as: "perTryIdleMs",
    }),
    hedging: field(
      hedging,
      "After perTryTimeout, the first try continues while a second one starts. The " +
        "service then handles both.",
    ),
    backOff: field(inner(backOff), "Backoff between tries."),
    maxRetryAfter: field(
      duration(tryTimeBounds),
      "The longest Retry-After of a refusal that is honoured. Needs rateLimited in `retryOn`.",
      { larger: "different", as: "retryAfterMsMax", dependentDefault: retryAfterMs },
    ),
  },
  {
    data: ({ backOff: waits = backOff.defaults, ...read }) => ({
      ...read,
      // Statuses are retried only if both the condition and the numbers are set.
      retriableStatusCodes: distinct(read.retriableStatusCodes),
      ...waits,
      retryAfterMsMax:
        read.retryAfterMsMax ?? (read.on.includes("rateLimited") ? retryAfterMs : undefined),
    }),
    check(block, policy, { retryAfterMsMax }) {
      checkConditions(block, policy, retryAfterMsMax);
      checkTries(block, policy);
    },
  },
);

function distinct(codes: readonly number[]): readonly number[] {
  return [...new Set(codes)];
}

/** A condition for a retry. */
export type RetryCondition = (typeof retryConditions)[number];

/** Source: envoy.config.route.v3.RetryPolicy. */
export type RetryPolicy = typeof retries.defaults;

/** Timeouts. Undefined: Envoy's own default applies. */
export type TimeoutPolicy = typeof timeouts.defaults;

/** Reports conditions without their settings, and settings without their conditions. */
function checkConditions(
  block: Block,
  { on, retriableStatusCodes }: RetryPolicy,
  retryAfterMsMax: number | undefined,
): void {
  const written = block.field("retryOn");
  const content = written && block.reader.contentOf(written);
  if (isSeq(content) && content.items.length === 0) {
    const message = '"retryOn" is empty';
    block.report("retryOn", { id: "HG125", message, expected: "at least one condition" });
  }
  const name = "retriableStatusCodes";
  const isStatusAsked = on.includes("retriableStatus");
  if (isStatusAsked && block.isLeftOut(name)) {
    const message = '"retryOn" contains retriableStatus, and no status is listed';
    block.report("retryOn", { id: "HG207", message, expected: `${name}: [502] next to it` });
  }
  if (!isStatusAsked && retriableStatusCodes.length > 0) {
    const message = `"${name}" are listed, and no status is retried`;
    block.report(name, { id: "HG207", message, expected: "retriableStatus in retryOn" });
  }
  // A Retry-After is only waited for if refusals are retried.
  if (retryAfterMsMax !== undefined && !on.includes("rateLimited")) {
    const message = '"maxRetryAfter" applies to refusals, which are not retried';
    block.report("maxRetryAfter", { id: "HG207", message, expected: "rateLimited in retryOn" });
  }
}

function checkTries(block: Block, { perTryMs, perTryIdleMs }: RetryPolicy): void {
  if (perTryIdleMs !== undefined && perTryMs !== undefined && perTryIdleMs >= perTryMs) {
    const message = "the idle timeout of a try must be shorter than the try";
    block.refuseOrder(["perTryIdleTimeout"], message, "less than perTryTimeout");
  }
  if (block.field("hedging") !== undefined && block.isLeftOut("perTryTimeout")) {
    const message = '"hedging" starts when a try takes too long, and perTryTimeout is not set';
    block.report("hedging", { id: "HG207", message, expected: "perTryTimeout next to it" });
  }
}

/** Refuses a timeout of a single try that is longer than that of its request. */
export function refuseLongTries(
  { block, data: { perTryMs } }: ReadBlock<RetryPolicy>,
  { requestMs }: TimeoutPolicy,
): void {
  if (requestMs === 0 || perTryMs === undefined || perTryMs <= requestMs) return;
  const message = "a single try may take longer than the request with all its tries";
  block.refuseOrder(["perTryTimeout"], message, "at most timeouts.request");
}
