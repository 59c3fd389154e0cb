import { noted, type Tree, type TreeMap } from "../../base/document.js";
import type { EnvoyContext } from "../base/context.js";
import { hasFeature } from "../base/envoy-features.js";
import { extension } from "../base/values.js";

/** What Envoy calls its refusals, where it has a name for them. */
const refusalDetails: readonly string[] = [
  // Overload manager: actions and load shed points.
  "overload",
  // Adaptive concurrency.
  "reached_concurrency_limit",
  "denied_by_admission_control",
  "local_rate_limited",
  // `drop_overloads` of a cluster's endpoints: a share of requests, and all.
  "drop_overload",
  "unconditional_drop_overload",
];

/** Begins the details of what Headgate refuses by ext_proc. */
const headgateDetails = "headgate_";

/** When to come back where a refusal does not say, in seconds. */
const shedRetrySeconds = 1;

/** The header by which Envoys know a refusal: another one in front does not repeat it. */
export const refusedHeader: TreeMap = { key: "x-envoy-ratelimited", value: "true" };

/**
 * Puts `retry-after` and the mark of a refusal on every answer with which this proxy sheds load. A
 * failure, such as a connection that was not made, is none: it may be tried again at once.
 *
 * Source: envoy.extensions.filters.network.http_connection_manager.v3.LocalReplyConfig.
 */
export function localReplies(context: EnvoyContext): TreeMap {
  // Envoys that cannot put it there themselves.
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
