import type { RetryCondition, RetryPolicy } from "../../../policy/upstream/retries.js";
import { noted, type TreeMap } from "../../base/document.js";
import { isAtLeastVersion } from "../../base/generate-options.js";
import type { MinorVersion } from "../../base/generator.js";
import { durationText } from "../base/values.js";

/** Envoy's words. Source: Envoy, "Router", x-envoy-retry-on. */
const conditionWords: Readonly<Record<Exclude<RetryCondition, "reset">, string>> = {
  connectFailure: "connect-failure",
  refusedStream: "refused-stream",
  gatewayError: "gateway-error",
  "5xx": "5xx",
  retriableStatus: "retriable-status-codes",
  rateLimited: "envoy-ratelimited",
};

/** From which Envoy on a reset counts only where the request was not begun. */
const resetBeforeRequest: MinorVersion = { major: 1, minor: 33 };

/** What is waited for at most where refusals are not tried again, in milliseconds. */
const defaultWaitMsMax = 1_000;

/**
 * What is tried again, and when. Refusals are not, unless the policy says `rateLimited`: they carry
 * `x-envoy-ratelimited`, and Envoy tries such an answer again for no other condition. How many
 * retries there may be at once is the cluster's retry budget.
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
    // Envoy draws each wait between 0 and these, doubling.
    retry_back_off: {
      base_interval: durationText(policy.backOffBaseMs),
      max_interval: durationText(policy.backOffMsMax),
    },
    rate_limited_retry_back_off: waitAsReported(policy),
    // Another host than the one that failed.
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

/** A request that was begun may have been done: only `5xx` and the like try those again. */
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

/** Waits as long as an answer says, where answers are tried again at all. */
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

/** The next try begins beside a slow one. Source: envoy.config.route.v3.HedgePolicy. */
export function hedgePolicy(policy: RetryPolicy | undefined): TreeMap | undefined {
  return policy?.hedging && { hedge_on_per_try_timeout: true };
}
