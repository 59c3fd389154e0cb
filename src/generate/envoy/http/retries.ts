import type { RetryCondition, RetryPolicy } from "../../../policy/upstream/retries.js";
import { noted, type TreeMap } from "../../base/document.js";
import { isAtLeastVersion } from "../../base/generate-options.js";
import type { MinorVersion } from "../../base/generator.js";
import { durationText } from "../base/values.js";

/** Envoy's names of conditions. Source: Envoy, "Router", x-envoy-retry-on. */
const conditionWords: Readonly<Record<Exclude<RetryCondition, "reset">, string>> = {
  connectFailure: "connect-failure",
  refusedStream: "refused-stream",
  gatewayError: "gateway-error",
  "5xx": "5xx",
  retriableStatus: "retriable-status-codes",
  rateLimited: "envoy-ratelimited",
};

/** First version of Envoy with `reset-before-request`, which retries no started request. */
const resetBeforeRequest: MinorVersion = { major: 1, minor: 33 };

/** Maximum wait if refusals are not retried, in milliseconds. */
const defaultWaitMsMax = 1_000;

/**
 * Returns what is retried, and when. Refusals are not retried unless the policy sets `rateLimited`:
 * they carry `x-envoy-ratelimited`, and Envoy retries such responses for no other condition. The
 * cluster's retry budget limits concurrent retries.
 *
 * Source: envoy.config.route.v3.RetryPolicy.
 */
export function retryPolicy(policy: RetryPolicy, envoyVersion: MinorVersion): TreeMap {
  const { retriableStatusCodes: codes, perTryMs, perTryIdleMs } = policy;
  return {
    retry_on: policy.on.map((condition) => wordOf(condition, envoyVersion)).join(","),
    retriable_status_codes: codes.length === 0 ? undefined : codes,
    num_retries: policy.retriesMax,
    per_try_timeout: perTryMs && durationText(perTryMs),
    per_try_idle_timeout: perTryIdleMs && durationText(perTryIdleMs),
    // Envoy draws each wait at random, between 0 and these. The upper end doubles.
    retry_back_off: {
      base_interval: durationText(policy.backOffBaseMs),
      max_interval: durationText(policy.backOffMsMax),
    },
    rate_limited_retry_back_off: waitAsReported(policy),
    // Retry on another host than the one that failed.
    retry_host_predicate: [
      {
        name: "envoy.retry_host_predicates.previous_hosts",
        typed_config: {
          "@type":
            "type.googleapis.com/" +
            "envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate",
        },
      },
    ],
    host_selection_retry_max_attempts: 3,
  };
}

/** A started request may have been processed. Only `5xx` and similar conditions retry those. */
function wordOf(condition: RetryCondition, envoyVersion: MinorVersion): string {
  if (condition !== "reset") return conditionWords[condition];
  return isAtLeastVersion(envoyVersion, resetBeforeRequest) ? "reset-before-request" : "reset";
}

const answerConditions: readonly RetryCondition[] = [
  "gatewayError",
  "5xx",
  "retriableStatus",
  "rateLimited",
];

/** Waits as long as a response says, if responses are retried at all. */
function waitAsReported({
  on,
  retryAfterMsMax = defaultWaitMsMax,
}: RetryPolicy): TreeMap | undefined {
  if (!on.some((condition) => answerConditions.includes(condition))) return undefined;
  return {
    reset_headers: [{ name: "retry-after", format: "SECONDS" }],
    max_interval: noted(
      "A response with a longer wait is retried after the default wait above.",
      durationText(retryAfterMsMax),
    ),
  };
}

/** Starts the next try while a slow one continues. Source: envoy.config.route.v3.HedgePolicy. */
export function hedgePolicy(policy: RetryPolicy | undefined): TreeMap | undefined {
  return policy?.hedging && { hedge_on_per_try_timeout: true };
}
