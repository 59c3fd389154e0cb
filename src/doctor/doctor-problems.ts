import { keysOf } from "../core/base/key-of.js";
import type { ProblemRow } from "../policy/problems/problem-row.js";

/**
 * Problems that `headgate doctor` can find between an Envoy and Headgate, worst first. Reports keep
 * this order. The documentation's table has the same rows. The meaning of an id never changes.
 */
export const doctorProblemRows = {
  HG512: {
    title: "Headgate cannot reach its store.",
    remedy:
      "Restore Redis first (its log, REDIS_URL, the network). Until then, limits " +
      "answer with on_store_failure. Replicas restore operators' records " +
      "themselves.",
  },
  HG500: {
    title: "No filter calls Headgate.",
    remedy: "Add the filters that `headgate generate envoy` writes, and their cluster.",
  },
  HG501: {
    title: "A filter that calls Headgate does not see requests.",
    remedy: "Put it before the router, and remove `disabled: true`.",
    severity: "either",
  },
  HG502: {
    title: "The cluster of Headgate does not exist.",
    remedy: "Add the cluster that the filter names. Without it, every call fails.",
  },
  HG503: {
    title: "The cluster of Headgate does not use HTTP/2.",
    remedy: "Add `explicit_http_config: {http2_protocol_options: {}}`, because gRPC needs it.",
  },
  HG504: {
    title: "No host of Headgate's cluster is healthy.",
    remedy: "Check that Headgate runs, its address and port, and the health check.",
    severity: "either",
  },
  HG505: {
    title: "Headgate reports that it is not healthy.",
    remedy: "Check its /readyz and its log for an unreachable store or a refused policy.",
    severity: "either",
  },
  HG506: {
    title: "A filter sends a domain that the policy does not have.",
    remedy: "Correct `domain` of the filter or the route, or add the domain to `rateLimits`.",
  },
  HG507: {
    title: "A descriptor matches no limit.",
    remedy: "Use the same keys in the same order as the path of a limit.",
  },
  HG508: {
    title: "The policy limits requests of a service, but no route sends their descriptors.",
    remedy: "Add `rate_limits` to its routes, as `headgate generate envoy` does.",
  },
  HG509: {
    title: "No descriptor of this Envoy reaches a limit.",
    remedy: "Add the descriptor to a route, or remove the limit. Another Envoy may send it.",
    severity: "warning",
  },
  HG510: {
    title: "A rate limit applies to a share of requests only.",
    remedy: "Set `filter_enabled` and `filter_enforced`, or their runtime keys, to 100.",
    severity: "warning",
  },
  HG511: {
    title: "Headgate runs a policy other than this file.",
    remedy: "Reload the file (an invalid file is not loaded), or pass the file that is active.",
    severity: "warning",
  },
  HG513: {
    title: "Costs reported after responses are charged differently than in envoyproxy/ratelimit.",
    remedy: "Set `charge: settle` on the limit, or check with `hits_addend: {number: 0}` first.",
    severity: "warning",
  },
  HG520: {
    title: "Requests passed or failed without an answer from the rate limit.",
    remedy: "Check the timeout, Headgate's load, and the network between the two.",
    severity: "either",
  },
  HG521: {
    title: "Requests passed or failed without an answer from admission.",
    remedy: "Check the message timeout, Headgate's load, and the network.",
    severity: "either",
  },
  HG522: {
    title: "The circuit breaker of Headgate's cluster refused calls.",
    remedy: "Raise `max_requests` and `max_pending_requests` of that cluster's breakers.",
  },
  HG523: {
    title: "The rate limit timeout is too short or too long.",
    remedy: "Set a `timeout` above the time that Headgate needs, at most 1s.",
    severity: "either",
  },
  HG524: {
    title: "Envoy gives up on requests that Headgate holds.",
    remedy:
      "Set `max_message_timeout` to the longest delay of a limit plus the queue's maxWait plus " +
      "200 ms.",
  },
  HG525: {
    title: "Envoy resets the ext_proc stream of every request.",
    remedy: "Set `envoy.reloadable_features.ext_proc_graceful_grpc_close` to true at run time.",
    severity: "warning",
  },
  HG526: {
    title: "Permits are released before the end of responses.",
    remedy: "Set `response_header_mode` and `response_trailer_mode` to SEND.",
    severity: "either",
  },
  HG527: {
    title: "The circuit breaker of ext_proc's cluster has Envoy's default.",
    remedy: "Raise `max_requests`. Each request in flight holds a stream there.",
    severity: "warning",
  },
  HG528: {
    title: "Callers can set their own priority, although the policy trusts nobody.",
    remedy:
      "Add the filter that removes the priority header as the first one, as " +
      "`headgate generate envoy` does.",
    severity: "warning",
  },
  HG530: {
    title: "Nothing shows Headgate what calls have used.",
    remedy:
      "Add the filter `envoy.filters.http.ext_proc.usage` that `headgate generate envoy` writes. " +
      "Until then, calls are charged as estimated.",
  },
  HG531: {
    title: "The filter that shows responses to Headgate is set up wrongly.",
    remedy:
      "Set `observability_mode: true`, `failure_mode_allow: true`, " +
      "`response_body_mode: STREAMED`, and " +
      "`metadata_options: {forwarding_namespaces: {untyped: [headgate]}}`.",
  },
  HG532: {
    title: "Requests are decided without the bodies that the policy reads.",
    remedy:
      "Set `request_body_mode: BUFFERED` in the service's overrides of ext_proc, as " +
      "`headgate generate envoy` does.",
  },
  HG533: {
    title: "Compressed responses hide their usage.",
    remedy: "Add `request_headers_to_remove: [accept-encoding]` to the service's virtual host.",
    severity: "warning",
  },
  HG534: {
    title: "Envoy keeps the route of requests that should fall back.",
    remedy:
      "Leave `route_cache_action` and `disable_clear_route_cache` out of the ext_proc filter.",
  },
  HG540: {
    title: "Envoy does not subscribe to Headgate's runtime layer.",
    remedy: "Add the runtime layer `headgate` that `headgate generate envoy` writes.",
  },
  HG541: {
    title: "Envoy has no connection for Headgate's runtime layer.",
    remedy: "Check the control port (HEADGATE_CONTROL_ADDR), and its cluster in Envoy.",
  },
  HG542: {
    title: "The last runtime layer is old.",
    remedy: "Check whether Headgate's control port answers, and whether updates are rejected.",
    severity: "either",
  },
  HG543: {
    title: "Envoy does not report its load to Headgate.",
    remedy: "Add the metrics_service sink that `headgate generate envoy` writes.",
  },
  HG544: {
    title: "Envoy does not send statistics that Headgate reads.",
    remedy: "Add `cluster\\..*\\.upstream_rq_.*` to `stats_matcher`.",
  },
  HG550: {
    title: "A circuit breaker is below the requests in flight.",
    remedy: "Raise `max_requests`, or let Headgate drive it (`feedback: [circuitBreakers]`).",
    severity: "warning",
  },
  HG551: {
    title: "The limit of a service is below the requests in flight.",
    remedy: "Raise `admission.maxInFlight` or `concurrency.limits.max`, or add capacity.",
    severity: "warning",
  },
  HG552: {
    title: "Outlier detection ejects hosts without a maximum.",
    remedy: "Set `max_ejection_percent`, such as 50.",
    severity: "warning",
  },
  HG553: {
    title: "Refused requests are retried immediately.",
    remedy: "Retry `connect-failure,refused-stream,reset-before-request`, with a retry budget.",
    severity: "warning",
  },
  HG554: {
    title: "Envoy's circuit breakers refuse requests of a service.",
    remedy:
      "Add capacity, raise the limit, or set `admission`. Breakers know no classes " +
      "except HIGH, and refuse any request when they are full.",
    severity: "warning",
  },
  HG560: {
    title: "Versions do not match.",
    remedy: "Use an Envoy in the tested range, and a single version of Headgate.",
    severity: "warning",
  },
  HG561: {
    title: "Clocks differ.",
    remedy: "Synchronise them (NTP). Windows, deadlines and tokens depend on the time of day.",
    severity: "warning",
  },
  HG562: {
    title: "A field in Envoy's configuration is deprecated.",
    remedy:
      "Use the replacement that Envoy's documentation names. A later Envoy rejects the field.",
    severity: "warning",
  },
} as const satisfies Record<string, ProblemRow>;

/** An id of a problem. */
export type DoctorProblemId = keyof typeof doctorProblemRows;

/** All ids, worst first. */
export const doctorProblemIds: readonly DoctorProblemId[] = keysOf(doctorProblemRows);
