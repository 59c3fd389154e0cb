import type { ProblemRow } from "../../policy/problems/problem-row.js";

/** Problems in documents: lints (HG400 to HG449), and what Envoy's API does not allow. */
export const documentProblemRows = {
  HG400: {
    title: "The configuration belongs to another filter.",
    remedy:
      "Write the `@type` that belongs to the filter's name. Envoy selects the filter by " +
      "its type.",
  },
  HG401: {
    title: "A gradient controller cannot learn its minimum latency.",
    remedy: "Set `interval` to measure it, or `fixed_value` to configure it.",
  },
  HG402: {
    title: "A route refers to a cluster that does not exist.",
    remedy: "Correct the name, or add the cluster.",
  },
  HG403: {
    title: "The router is not the last HTTP filter.",
    remedy: "Put `envoy.filters.http.router` last, and only once.",
  },
  HG404: {
    title: "An overload action is unknown.",
    remedy: "Use one of Envoy's actions. A misspelt action protects nothing.",
  },
  HG405: {
    title: "A trigger refers to a resource that has no monitor.",
    remedy: "Add a resource monitor with that name, or correct the trigger.",
  },
  HG406: {
    title: "A scaled trigger ends before it starts.",
    remedy: "Set `scaling_threshold` below `saturation_threshold`.",
  },
  HG407: {
    title: "A resource triggers the same action twice.",
    remedy: "Keep one trigger for each resource. Make it `scaled` for a gradual effect.",
  },
  HG408: {
    title: "A heap monitor has a maximum of 0 bytes.",
    remedy: "Set the maximum heap in `max_heap_size_bytes`, or as its runtime default.",
  },
  HG409: {
    title: "A resource monitor is unknown.",
    remedy: "Use one of Envoy's monitors. Each has its own configuration.",
  },
  HG410: {
    title: "An external processor has no service to call.",
    remedy: "Set `grpc_service` (or `http_service`).",
  },
  HG411: {
    title: "A body is streamed in full duplex mode without trailers.",
    remedy: "Set that direction's trailer mode to SEND.",
  },
  HG412: {
    title: "A hits format has more than one substitution.",
    remedy: "Write one `%...%` and nothing else, or a number.",
  },
  HG413: {
    title: "A local token bucket is filled too often.",
    remedy: "Set `fill_interval` to at least 0.05s, with more tokens for each fill.",
  },
  HG414: {
    title: "Two clusters have the same name.",
    remedy: "Give each cluster its own name.",
  },
  HG415: {
    title: "The minimum of a concurrency limit is above its maximum.",
    remedy:
      "Lower `min_concurrency_limit`, or raise `max_concurrency_limit`. Otherwise the " +
      "minimum silently wins.",
  },
  HG416: {
    title: "A service is called through a cluster that does not exist.",
    remedy: "Add the cluster. Envoy starts without it, and every call fails.",
  },
  HG417: {
    title: "A load shed point is unknown.",
    remedy: "Correct its name. Envoy accepts any name, and an unknown one sheds nothing.",
  },
  HG418: {
    title: "A token bucket applies before a quota is assigned.",
    remedy: "Use a blanket rule there. Envoy 1.40 crashes on the bucket's second request.",
  },
  HG419: {
    title: "Hits of a route's rate limit are ignored.",
    remedy: "Move `rate_limits` to typed_per_filter_config. Elsewhere, a refund counts as a hit.",
  },
  HG420: {
    title: "A fraction is greater than 1.",
    remedy: "Set a numerator of at most the denominator. Envoy treats more as 100 %.",
  },
  HG421: {
    title: "Outlier detection ejects hosts without a maximum.",
    remedy: "Set `max_ejection_percent`. Otherwise one common fault can eject all hosts.",
    severity: "warning",
  },
  HG422: {
    title: "A service has a rate limit and no concurrency limit.",
    remedy:
      "Add `concurrency` or `admission.maxInFlight`. A rate limit does not protect against " +
      "slow requests.",
    severity: "warning",
  },
  HG423: {
    title: "A cluster has circuit breakers but no outlier detection.",
    remedy:
      "Add outlier detection. A host that fails fast attracts requests, and the breakers " +
      "then refuse for all hosts.",
    severity: "warning",
  },
  HG424: {
    title: "Refused requests are retried immediately.",
    remedy:
      "Retry only requests that have certainly not started, with a budget. Let " +
      "`rateLimited` wait.",
    severity: "warning",
  },
  HG425: {
    title: "Different services share one configured minimum latency.",
    remedy: "Measure it (`sampled`), or set it for each service and use sidecars.",
    severity: "warning",
  },
  HG426: {
    title: "A memory cap below the heap refuses every connection.",
    remedy: "Raise `max_memory_bytes` above what the group uses, or use the group's own limit.",
    severity: "warning",
  },
  HG427: {
    title: "An external processor requests `xds.node`.",
    remedy: "Remove it. It adds tens of kilobytes to each request.",
  },
  HG428: {
    title:
      "The cluster of an external processor that sees whole requests has Envoy's default " +
      "circuit breaker.",
    remedy:
      "Raise `max_requests` of the cluster. Each request holds a stream, and above the " +
      "limit clients get 500.",
    severity: "warning",
  },
  HG429: {
    title: "Envoy does not enforce a quota of requests per time unit.",
    remedy: "Use a token bucket. With requests per time unit, Envoy 1.40 lets everything pass.",
  },
  HG430: {
    title: "A duration of a quota is not in whole seconds, or is less than 2s.",
    remedy: "Write whole seconds, at least 2s. Envoy drops fractions.",
    severity: "warning",
  },
  HG431: {
    title: "A rate limit call has no timeout or a very long one.",
    remedy:
      "Set `timeout` above 0s and at most 1s. Requests wait that long when the service " + "hangs.",
    severity: "warning",
  },
  HG433: {
    title: "Envoy resets the streams of an external processor.",
    remedy:
      "Set `envoy.reloadable_features.ext_proc_graceful_grpc_close` to true in a runtime layer.",
    severity: "warning",
  },
  HG434: {
    title: "Filters that refuse requests come after admission control.",
    remedy: "Put admission control last before the router. It counts their refusals as failures.",
    severity: "warning",
  },
  HG435: {
    title: "The token bucket of a quota does not have a fill interval in whole seconds.",
    remedy: "Write whole seconds. Envoy 1.40 drops fractions, and lets everything pass below 1s.",
  },
  HG436: {
    title: "A quota's last assignment is to be used again.",
    remedy: "Write `fallback_rate_limit`: Envoy 1.40 does not keep a refusal.",
  },
  HG437: {
    title: "A quota is overridden where Envoy refuses it.",
    remedy: "Write one filter for each quota, and turn filters on by `FilterConfig {config: {}}`.",
  },
  HG438: {
    title: "A quota's refusal has two texts.",
    remedy: "Keep `http_body`: a message of `grpc_status` would take its place for all callers.",
  },
  HG439: {
    title: "A service's requests are charged to one limit by a call and by a quota.",
    remedy:
      "Take the descriptor out of the service's `rateLimit`, or the service out of the quota.",
    severity: "warning",
  },
  HG440: {
    title: "A prefix is bypassed: all below it pass uncounted.",
    remedy: "Name single paths in `bypassPaths`, unless nothing below it ever needs a limit.",
    severity: "warning",
  },
  HG441: {
    title: "A path ends in a slash, and stands for itself alone.",
    remedy: "Write `/status/*` for all below it, or leave the slash out.",
    severity: "warning",
  },
  HG442: {
    title: "A priority header is read that proxies have removed.",
    remedy: "Name who may set it in `priority.from.trust`, or read another header.",
    severity: "warning",
  },
  HG443: {
    title: "A curve over the estimated wait refuses requests while nobody waits.",
    remedy: "Choose a steeper `slope`, or a later `midpoint`: their product is 4.6 for 1 %.",
    severity: "warning",
  },
  HG444: {
    title: "Envoy lets in larger headers than Headgate reads.",
    remedy:
      "Raise HEADGATE_REQUEST_BYTES_MAX to four times as much, or lower " +
      "`proxies.listener.maxRequestHeadersKb` to 64.",
    severity: "warning",
  },
  HG445: {
    title: "Visitors come past a waiting room while Headgate does not answer.",
    remedy:
      "Set `failureModeDeny: true` in `proxies.headgate`, or say that everybody enters then: " +
      "`onStoreFailure: open`.",
    severity: "warning",
  },
  HG450: {
    title: "A name or a type is not of Envoy's API.",
    remedy: "Correct the spelling, or move the field to the message where it belongs.",
  },
  HG451: {
    title: "A value does not have the type that Envoy's API expects.",
    remedy: "Write the value as the API defines it. Quote texts that look like numbers.",
  },
  HG452: {
    title: "A value violates a rule of Envoy's API.",
    remedy: "Choose a value within the rule. Otherwise Envoy rejects the whole configuration.",
  },
  HG454: {
    title: "The target version does not support this output.",
    remedy: "Generate for a later version, or leave out what needs it.",
  },
  HG455: {
    title: "A generated file would get an invalid name.",
    remedy:
      "Give services names of letters, digits, `-`, `_` and `.` that differ in more than " +
      "case.",
  },
  HG453: {
    title: "A patch for Envoy cannot be checked.",
    remedy: "Patch a place whose message type follows from the patch itself.",
  },
  HG457: {
    title: "A field is deprecated in Envoy's API.",
    remedy:
      "Use the replacement that Envoy's documentation names. A later Envoy rejects the " + "field.",
    severity: "warning",
  },
  HG456: {
    title: "A Kubernetes object does not match its API.",
    remedy: "Correct what the message names. If it comes from the policy, check the names first.",
  },
  HG458: {
    title: "Two Kubernetes objects have the same name.",
    remedy: "Give services names that differ in their first 40 characters.",
  },
  HG459: {
    title: "A Kubernetes object is larger than a cluster accepts.",
    remedy: "Give its services fewer limits, or move some of them to another policy.",
  },
} as const satisfies Record<string, ProblemRow>;
