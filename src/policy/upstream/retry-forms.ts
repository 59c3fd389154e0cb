import { duration, list, map, mapForm, row, whole, words, written } from "../text/form.js";
import { defaultTimeouts, defaultRetries as retries } from "./default-upstream.js";
import {
  connectTimeBounds,
  defaultRetryAfterMs,
  hedgingWords,
  numRetriesBounds,
  requestTimeBounds,
  retriableCodeBounds,
  retriableCodesMax,
  retryConditions,
  tryTimeBounds,
} from "./retries.js";
import { backOffShape, retriesShape, timeoutsShape } from "./upstream-shapes.js";

const backOff = mapForm(
  { shape: backOffShape, docs: "Waits between tries: jittered, doubling." },
  {
    base: row(duration(tryTimeBounds), "The first wait.", written(retries.backOffBaseMs)),
    max: row(duration(tryTimeBounds), "The longest wait.", written(retries.backOffMsMax)),
  },
);

/** `retries`. */
export const retriesForm = mapForm(
  { shape: retriesShape, docs: "What is tried again, and how. Left out: nothing is." },
  {
    numRetries: row(whole(numRetriesBounds), "Tries after the first.", retries.retriesMax),
    retryOn: row(
      list(words(...retryConditions), undefined, 1),
      "What is tried again. Usually connectFailure, refusedStream, reset: surely not begun.",
    ),
    retriableStatusCodes: row(
      list(whole(retriableCodeBounds), retriableCodesMax),
      "What retriableStatus in `retryOn` means, such as 429 or 502.",
    ),
    perTryTimeout: row(duration(tryTimeBounds), "The longest that one try may take."),
    perTryIdleTimeout: row(duration(tryTimeBounds), "The longest that nothing moves in one try."),
    hedging: row(
      words(...hedgingWords),
      "A try that takes longer than perTryTimeout goes on beside the next: the service does both.",
    ),
    backOff: row(map(backOff), "Waits between tries."),
    maxRetryAfter: row(
      duration(tryTimeBounds),
      "The longest Retry-After of a refusal that is waited for; needs rateLimited in `retryOn`.",
      written(defaultRetryAfterMs),
    ),
  },
);

/** `timeouts`. */
export const timeoutsForm = mapForm(
  { shape: timeoutsShape, docs: "How long what may take." },
  {
    request: row(
      duration(requestTimeBounds),
      "A request with its retries; 0s: for ever, as streams need it.",
      written(defaultTimeouts.requestMs),
    ),
    connect: row(
      duration(connectTimeBounds),
      "A connection that is made.",
      written(defaultTimeouts.connectMs),
    ),
    idle: row(duration(requestTimeBounds), "A stream on which nothing moves; 0s: for ever."),
    maxStreamDuration: row(
      duration(tryTimeBounds),
      "A stream, whatever moves on it: upgraded connections, too. Left out: no bound.",
    ),
    maxConnectionDuration: row(
      duration(tryTimeBounds),
      "A connection to the service, which then takes no more requests. Left out: no bound.",
    ),
  },
);
