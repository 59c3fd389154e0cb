import { noted, type Tree, type TreeMap } from "../../base/document.js";
import type { EnvoyContext } from "../base/context.js";
import { hasFeature } from "../base/envoy-features.js";
import { extension } from "../base/values.js";

/** Response code details of Envoy's refusals, if Envoy has a name for them. */
const refusalDetails: readonly string[] = [
  // Overload manager: actions and load shed points.
  "overload",
  // Adaptive concurrency.
  "reached_concurrency_limit",
  "denied_by_admission_control",
  "local_rate_limited",
  // `drop_overloads` of a cluster's endpoints: for a share of requests, and for all.
  "drop_overload",
  "unconditional_drop_overload",
];

/** Prefix of the details of Headgate's refusals through ext_proc. */
const headgateDetails = "headgate_";

/** `retry-after` of refusals that do not set it, in seconds. */
const shedRetrySeconds = 1;

/** Header by which Envoys recognize a refusal, so that another Envoy in front does not retry it. */
export const refusedHeader: TreeMap = { key: "x-envoy-ratelimited", value: "true" };

/**
 * Adds `retry-after` and the mark of a refusal to all responses with which this proxy sheds load. A
 * failure, such as a failed connection, is no refusal and may be retried at once.
 *
 * Source: envoy.extensions.filters.network.http_connection_manager.v3.LocalReplyConfig.
 */
export function localReplies(context: EnvoyContext): TreeMap {
  // For Envoys whose filters cannot add it themselves.
  const more = hasFeature(context, "retryAfterHeader") ? [] : ["request_rate_limited"];
  const texts = [...refusalDetails, ...more].map((name) => `"${name}"`).join(", ");
  const expression =
    `response.code_details in [${texts}] || ` +
    `response.code_details.startsWith("${headgateDetails}")`;
  const filters: readonly Tree[] = [
    noted("An open circuit breaker.", { response_flag_filter: { flags: ["UO"] } }),
    {
      extension_filter: extension(
        "envoy.access_loggers.extension_filters.cel",
        "envoy.extensions.access_loggers.filters.cel.v3.ExpressionFilter",
        { expression },
      ),
    },
  ];
  return {
    mappers: [
      {
        filter: { or_filter: { filters } },
        headers_to_add: [
          {
            header: { key: "retry-after", value: String(shedRetrySeconds) },
            append_action: "ADD_IF_ABSENT",
          },
          noted("Tells calling Envoys not to retry this response.", {
            header: refusedHeader,
            append_action: "OVERWRITE_IF_EXISTS_OR_ADD",
          }),
        ],
      },
    ],
  };
}
