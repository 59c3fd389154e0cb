import type { ProblemRow } from "../../policy/problems/problem-row.js";

/** What is wrong in a document: lints (HG400 to HG449), and what Envoy's API has not. */
export const documentProblemRows = {
  HG400: {
    title: "A filter's configuration is another filter's.",
    remedy: "Write the `@type` that belongs to the filter's name; Envoy goes by the type.",
  },
  HG401: {
    title: "A gradient controller has no way to learn its least latency.",
    remedy: "Write `interval` to measure it, or `fixed_value` to state it.",
  },
  HG402: {
    title: "A route leads to a cluster that is not there.",
    remedy: "Correct the name, or add the cluster.",
  },
  HG403: {
    title: "The router is not the last HTTP filter.",
    remedy: "Put `envoy.filters.http.router` last, once.",
  },
  HG404: {
    title: "An overload action is unknown.",
    remedy: "Use one of Envoy's actions; a misspelt one protects nothing.",
  },
  HG405: {
    title: "A trigger names a resource that nobody watches.",
    remedy: "Add the resource monitor of that name, or correct the trigger.",
  },
  HG406: {
    title: "A scaled trigger ends before it begins.",
    remedy: "Put `scaling_threshold` below `saturation_threshold`.",
  },
  HG407: {
    title: "A resource triggers one action twice.",
    remedy: "Keep one trigger of each resource; make it `scaled` for a gradual one.",
  },
  HG408: {
    title: "A heap of no bytes is watched.",
    remedy: "Write the largest heap in `max_heap_size_bytes`, or as its runtime default.",
  },
  HG409: {
    title: "A resource monitor is unknown.",
    remedy: "Use one of Envoy's monitors; each has its own configuration.",
  },
  HG410: {
    title: "An external processor has no service to ask.",
    remedy: "Write `grpc_service` (or `http_service`).",
  },
  HG411: {
    title: "A body is streamed in full duplex, and its trailers are not sent.",
    remedy: "Set that direction's trailer mode to SEND.",
  },
  HG412: {
    title: "A number of hits is made of more than one substitution.",
    remedy: "Write one `%...%` and nothing else, or a number.",
  },
  HG413: {
    title: "A local token bucket is filled too often.",
    remedy: "Write a `fill_interval` of at least 0.05s, with more tokens each time.",
  },
  HG414: {
    title: "Two clusters have one name.",
    remedy: "Give each cluster a name of its own.",
  },
  HG415: {
    title: "A concurrency limit's least is above its most.",
    remedy:
      "Lower `min_concurrency_limit`, or raise `max_concurrency_limit`: the least wins silently.",
  },
  HG416: {
    title: "A service is asked over a cluster that is not there.",
    remedy: "Add the cluster: Envoy starts without it, and every call fails.",
  },
  HG417: {
    title: "A load shed point is unknown.",
    remedy: "Correct its name: Envoy takes any, and sheds nowhere.",
  },
  HG418: {
    title: "A token bucket holds until a quota is assigned.",
    remedy: "Use a blanket rule there: Envoy 1.40 crashes on the bucket's second request.",
  },
  HG419: {
    title: "Hits of a route's rate limit are ignored.",
    remedy: "Move `rate_limits` to typed_per_filter_config: elsewhere a refund counts as a hit.",
  },
  HG420: {
    title: "A fraction is more than the whole.",
    remedy: "Write a numerator of at most the denominator: more is taken for all.",
  },
  HG421: {
    title: "Hosts are put out for errors, and nothing caps how many.",
    remedy: "Write `max_ejection_percent`: a fault that all share must not put all out.",
    severity: "warning",
  },
  HG422: {
    title: "A service has a rate limit and no concurrency limit.",
    remedy: "Add `concurrency` or `admission.maxInFlight`: rates say nothing of slow requests.",
    severity: "warning",
  },
  HG423: {
    title: "A cluster has circuit breakers and no outlier detection.",
    remedy: "Add it: a host that fails fast draws requests, and breakers then refuse for all.",
    severity: "warning",
  },
  HG424: {
    title: "Refusals are tried again at once.",
    remedy: "Retry what has surely not begun, with a budget; let `rateLimited` wait.",
    severity: "warning",
  },
  HG425: {
    title: "Services that differ share one stated least latency.",
    remedy: "Measure it (`sampled`), or state it for each service, and use sidecars.",
    severity: "warning",
  },
  HG426: {
    title: "A memory cap below the heap closes the door.",
    remedy: "Raise `max_memory_bytes` above what the group uses, or leave it to the group's limit.",
    severity: "warning",
  },
  HG427: {
    title: "An external processor asks for `xds.node`.",
    remedy: "Leave it out: it is tens of kilobytes for each request.",
  },
  HG428: {
    title: "A processor that sees whole requests has Envoy's default circuit breaker.",
    remedy:
      "Raise its cluster's `max_requests`: each request holds a stream, above it clients get 500.",
    severity: "warning",
  },
  HG429: {
    title: "A quota of requests per time unit is not enforced.",
    remedy: "Use a token bucket: Envoy 1.40 lets everything pass.",
  },
  HG430: {
    title: "A quota's time is not of whole seconds, two at least.",
    remedy: "Write whole seconds, 2s or more: Envoy cuts fractions off.",
    severity: "warning",
  },
  HG431: {
    title: "A rate limit's answer is waited for without bound.",
    remedy: "Write a `timeout` above 0s, at most 1s: requests wait so long when the service hangs.",
    severity: "warning",
  },
  HG433: {
    title: "Streams of an external processor are reset.",
    remedy:
      "Set `envoy.reloadable_features.ext_proc_graceful_grpc_close` to true in a runtime layer.",
    severity: "warning",
  },
  HG434: {
    title: "Filters that refuse stand behind admission control.",
    remedy: "Put admission control last before the router: it takes refusals for failures.",
    severity: "warning",
  },
  HG435: {
    title: "A quota's token bucket is not filled each so many whole seconds.",
    remedy: "Write whole seconds: Envoy 1.40 drops the rest, and lets everything pass below one.",
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
  HG450: {
    title: "A name or a type is not of Envoy's API.",
    remedy: "Correct its spelling, or move it to the message where it belongs.",
  },
  HG451: {
    title: "A value is not of the kind that Envoy's API has there.",
    remedy: "Write the value as the API has it; texts that look like numbers need quotes.",
  },
  HG452: {
    title: "A value breaks a rule of Envoy's API.",
    remedy: "Choose a value within the rule; Envoy would refuse the whole configuration.",
  },
  HG454: {
    title: "The version that is generated for has not what was generated.",
    remedy: "Generate for a later version, or leave out what needs it.",
  },
  HG455: {
    title: "A file would get a name that no file should have.",
    remedy: "Give services names of letters, digits, `-`, `_` and `.`, different without case.",
  },
  HG453: {
    title: "A patch for Envoy cannot be checked.",
    remedy: "Patch at a place whose message can be told from the patch itself.",
  },
  HG457: {
    title: "A field is deprecated in Envoy's API.",
    remedy: "Write what takes its place in Envoy's docs; a later Envoy refuses the field.",
    severity: "warning",
  },
  HG456: {
    title: "An object of Kubernetes is not as its API has it.",
    remedy: "Correct what the message names; where it comes of the policy, names above all.",
  },
  HG458: {
    title: "Two objects of Kubernetes have one name.",
    remedy: "Give services names that differ in their first 40 characters.",
  },
  HG459: {
    title: "An object of Kubernetes is larger than a cluster takes.",
    remedy: "Give its services fewer limits, or put some of them into a policy of their own.",
  },
} as const satisfies Record<string, ProblemRow>;
