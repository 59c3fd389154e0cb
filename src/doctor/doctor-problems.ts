import type { ProblemRow } from "../policy/problems/problem-row.js";

/**
 * What `headgate doctor` can find between an Envoy and Headgate, the worst first: reports keep this
 * order. The docs' table is these rows; an id keeps its meaning.
 */
export const doctorProblemRows = {
  HG512: {
    title: "Headgate cannot reach its store.",
    remedy:
      "Bring Redis back first (its log, REDIS_URL, the network): limits go by on_store_failure " +
      "meanwhile, and operators' records are put back by the replicas.",
  },
  HG500: {
    title: "Nothing asks Headgate.",
    remedy: "Add the filters that `headgate generate envoy` writes, and the cluster they ask.",
  },
  HG501: {
    title: "A filter that asks Headgate is out of requests' way.",
    remedy: "Put it before the router, and take `disabled: true` away.",
    severity: "either",
  },
  HG502: {
    title: "The cluster that leads to Headgate is not there.",
    remedy: "Add the cluster that the filter names; until then every call fails.",
  },
  HG503: {
    title: "The cluster that leads to Headgate does not speak HTTP/2.",
    remedy: "Add `explicit_http_config: {http2_protocol_options: {}}`: gRPC needs it.",
  },
  HG504: {
    title: "No host of Headgate's cluster is healthy.",
    remedy: "Look whether Headgate runs, at its address and port, and at the health check.",
    severity: "either",
  },
  HG505: {
    title: "Headgate says that it is not well.",
    remedy: "Look at its /readyz and its log: a store that is away, or a policy that is refused.",
    severity: "either",
  },
  HG506: {
    title: "A domain is asked for that the policy does not have.",
    remedy: "Correct `domain` of the filter or the route, or add it to `rateLimits`.",
  },
  HG507: {
    title: "A descriptor is asked for that meets no limit.",
    remedy: "Make its keys those of a limit's path, in order, and as many.",
  },
  HG508: {
    title: "Requests of a service are not asked for, and the policy limits them.",
    remedy: "Add `rate_limits` to its routes, as `headgate generate envoy` does.",
  },
  HG509: {
    title: "No descriptor of this Envoy reaches a limit.",
    remedy: "Add the descriptor to a route, or remove the limit; another Envoy may ask for it.",
    severity: "warning",
  },
  HG510: {
    title: "A rate limit holds for a share of requests only.",
    remedy: "Set `filter_enabled` and `filter_enforced`, or their runtime keys, to 100.",
    severity: "warning",
  },
  HG511: {
    title: "Headgate runs another policy than this file.",
    remedy: "Reload it (a refused file stays out), or name the file that is active.",
    severity: "warning",
  },
  HG513: {
    title: "Costs told after responses are charged otherwise than envoyproxy/ratelimit does.",
    remedy: "Write `charge: settle` on the limit, or ask with `hits_addend: {number: 0}` first.",
    severity: "warning",
  },
  HG520: {
    title: "Requests went without a rate limit's answer.",
    remedy: "Look at the timeout, at Headgate's load and at the network between the two.",
    severity: "either",
  },
  HG521: {
    title: "Requests went without an answer of admission.",
    remedy: "Look at the message timeout, at Headgate's load and at the network.",
    severity: "either",
  },
  HG522: {
    title: "Calls to Headgate met the breaker of its cluster.",
    remedy: "Raise `max_requests` and `max_pending_requests` of that cluster's breakers.",
  },
  HG523: {
    title: "A rate limit's answer is waited for too shortly, or too long.",
    remedy: "Write a `timeout` above what Headgate needs, at most 1s.",
    severity: "either",
  },
  HG524: {
    title: "Envoy gives up on requests that wait in a queue.",
    remedy: "Set `max_message_timeout` to the queue's maxWait and 200 ms.",
  },
  HG525: {
    title: "The stream of every request to ext_proc is reset.",
    remedy: "Set `envoy.reloadable_features.ext_proc_graceful_grpc_close` to true at run time.",
    severity: "warning",
  },
  HG526: {
    title: "Places are given back before, or without, the end of responses.",
    remedy: "Set `response_header_mode` and `response_trailer_mode` to SEND.",
    severity: "either",
  },
  HG527: {
    title: "The circuit breaker of ext_proc's cluster has Envoy's default.",
    remedy: "Raise `max_requests`: each request in flight holds a stream there.",
    severity: "warning",
  },
  HG528: {
    title: "Callers may state their own priority where the policy trusts nobody.",
    remedy:
      "Put the filter first that removes the priority header, as `headgate generate envoy` does.",
    severity: "warning",
  },
  HG540: {
    title: "Envoy does not ask for the layer that Headgate sends.",
    remedy: "Add the runtime layer `headgate` that `headgate generate envoy` writes.",
  },
  HG541: {
    title: "Envoy has no connection for the layer that Headgate sends.",
    remedy:
      "Look at the control port (HEADGATE_CONTROL_ADDR), and at the cluster that leads there.",
  },
  HG542: {
    title: "The last layer is old.",
    remedy: "Look whether Headgate's control port answers, and whether updates are rejected.",
    severity: "either",
  },
  HG543: {
    title: "Envoy does not tell Headgate what it sees.",
    remedy: "Add the metrics_service sink that `headgate generate envoy` writes.",
  },
  HG544: {
    title: "Statistics that Headgate reads are left out.",
    remedy: "Add `cluster\\..*\\.upstream_rq_.*` to `stats_matcher`.",
  },
  HG550: {
    title: "A breaker is below what is in flight.",
    remedy: "Raise `max_requests`, or let Headgate drive it (`feedback: [circuitBreakers]`).",
    severity: "warning",
  },
  HG551: {
    title: "A service's limit is below what is in flight.",
    remedy: "Raise `admission.maxInFlight` or `concurrency.limits.max`, or add capacity.",
    severity: "warning",
  },
  HG552: {
    title: "Hosts are put out, and nothing caps how many.",
    remedy: "Write `max_ejection_percent`, such as 50.",
    severity: "warning",
  },
  HG553: {
    title: "Refusals are tried again at once.",
    remedy: "Retry `connect-failure,refused-stream,reset-before-request`, with a retry budget.",
    severity: "warning",
  },
  HG554: {
    title: "Envoy's breakers refuse requests of a service.",
    remedy:
      "Add capacity, raise its limit, or write `admission`: breakers know no classes but HIGH, " +
      "and refuse whoever comes when they are full.",
    severity: "warning",
  },
  HG560: {
    title: "Versions do not fit.",
    remedy: "Use an Envoy of the range that is tested, and one version of Headgate.",
    severity: "warning",
  },
  HG561: {
    title: "Clocks differ.",
    remedy: "Synchronise them (NTP): windows, deadlines and tokens go by the time of day.",
    severity: "warning",
  },
  HG562: {
    title: "A field that Envoy runs with is deprecated in its API.",
    remedy: "Write what takes its place in Envoy's docs; a later Envoy refuses the field.",
    severity: "warning",
  },
} as const satisfies Record<string, ProblemRow>;

/** A row's name. */
export type DoctorProblemId = keyof typeof doctorProblemRows;

/** All ids, the worst first. */
export const doctorProblemIds: readonly DoctorProblemId[] =
  Object.keys(doctorProblemRows).filter(isDoctorProblemId);

function isDoctorProblemId(id: string): id is DoctorProblemId {
  return Object.hasOwn(doctorProblemRows, id);
}
