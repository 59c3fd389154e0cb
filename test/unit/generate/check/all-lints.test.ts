import { describe, expect, it } from "vitest";
import type { PlainValue } from "../../../../src/generate/base/plain-tree.js";
import { allLints } from "../../../../src/generate/check/all-lints.js";
import { checkMessage } from "../../../../src/generate/check/check-message.js";
import { runLints } from "../../../../src/generate/check/lint.js";
import { readEnvoyApi } from "../../../support/envoy-api.js";

const api = readEnvoyApi();
const types = "type.googleapis.com/envoy.extensions";
const routerFilter = {
  name: "envoy.filters.http.router",
  typed_config: { "@type": `${types}.filters.http.router.v3.Router` },
};
const bootstrap = "envoy.config.bootstrap.v3.Bootstrap";
const cluster = "envoy.config.cluster.v3.Cluster";
const overload = "envoy.config.overload.v3.OverloadManager";
const manager = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
const gradient = `envoy.extensions.filters.http.adaptive_concurrency.v3.GradientControllerConfig`;
const processor = "envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor";
const quota = "envoy.extensions.filters.http.rate_limit_quota.v3.RateLimitQuotaBucketSettings";
const strategy = "envoy.type.v3.RateLimitStrategy";

function filter(name: string, type: string, config: object = {}): PlainValue {
  const typed = { "@type": `${types}.filters.http.${type}`, ...config };
  return { name: `envoy.filters.http.${name}`, typed_config: typed };
}

function chain(...filters: readonly PlainValue[]): PlainValue {
  return { stat_prefix: "a", route_config: { name: "a" }, http_filters: filters };
}

function limits(least: number, most: number): PlainValue {
  return {
    max_concurrency_limit: most,
    min_concurrency_limit: least,
    concurrency_update_interval: "1s",
  };
}

const defaultGradient = {
  concurrency_limit_params: limits(1, 2),
  min_rtt_calc_params: { fixed_value: "0.02s" },
};

/** A whole configuration with these clusters, and a listener with this route and these filters. */
function whole(parts: {
  readonly clusters?: readonly PlainValue[];
  readonly route?: PlainValue;
  readonly filters?: readonly PlainValue[];
  readonly layers?: readonly PlainValue[];
}): PlainValue {
  const { clusters = [], route = { cluster: "a" }, filters = [], layers = [] } = parts;
  const hosts = [{ name: "a", domains: ["*"], routes: [{ match: { prefix: "/" }, route }] }];
  const typed = {
    "@type": `${types}.filters.network.http_connection_manager.v3.HttpConnectionManager`,
    stat_prefix: "a",
    route_config: { virtual_hosts: hosts },
    http_filters: [...filters, routerFilter],
  };
  const name = "envoy.filters.network.http_connection_manager";
  const address = { socket_address: { address: "127.0.0.1", port_value: 1 } };
  const listener = {
    name: "a",
    address,
    filter_chains: [{ filters: [{ name, typed_config: typed }] }],
  };
  return {
    layered_runtime: { layers },
    static_resources: { listeners: [listener], clusters },
  };
}

const a = { name: "a", type: "STATIC" };
const rls = { rate_limit_service: { grpc_service: { envoy_grpc: { cluster_name: "a" } } } };
const asks = { grpc_service: { envoy_grpc: { cluster_name: "a" } } };
const graceful = {
  name: "a",
  static_layer: { "envoy.reloadable_features.ext_proc_graceful_grpc_close": true },
};

function heapMonitor(bytes: number, type = "fixed_heap.v3.FixedHeapConfig"): PlainValue {
  const typed = { "@type": `${types}.resource_monitors.${type}`, max_heap_size_bytes: bytes };
  return { name: "envoy.resource_monitors.fixed_heap", typed_config: typed };
}

function onHeap(trigger: object): PlainValue {
  return { name: "envoy.resource_monitors.fixed_heap", ...trigger };
}

const stopAction = "envoy.overload_actions.stop_accepting_requests";

function overloaded(triggers: readonly PlainValue[], name = stopAction): PlainValue {
  return { resource_monitors: [heapMonitor(5)], actions: [{ name, triggers }] };
}

const at90 = onHeap({ threshold: { value: 0.9 } });
const groupMonitor = {
  name: "envoy.resource_monitors.cgroup_memory",
  typed_config: {
    "@type": `${types}.resource_monitors.cgroup_memory.v3.CgroupMemoryConfig`,
    max_memory_bytes: 5,
  },
};

/** A lint, a message that it is for, one that is wrong, and one that is right. */
const cases: ReadonlyArray<
  readonly [id: string, on: string, wrong: PlainValue, right: PlainValue]
> = [
  [
    "HG400",
    manager,
    chain(filter("ratelimit", "fault.v3.HTTPFault"), routerFilter),
    chain(filter("ratelimit", "ratelimit.v3.RateLimit", { domain: "a", ...rls }), routerFilter),
  ],
  [
    "HG401",
    gradient,
    { ...defaultGradient, min_rtt_calc_params: { request_count: 5 } },
    defaultGradient,
  ],
  ["HG402", bootstrap, whole({ route: { cluster: "b" }, clusters: [a] }), whole({ clusters: [a] })],
  [
    "HG402",
    bootstrap,
    whole({
      route: { weighted_clusters: { clusters: [{ name: "b", weight: 1 }] } },
      clusters: [a],
    }),
    whole({
      route: { weighted_clusters: { clusters: [{ name: "a", weight: 1 }] } },
      clusters: [a],
    }),
  ],
  [
    "HG403",
    manager,
    chain(routerFilter, filter("fault", "fault.v3.HTTPFault")),
    chain(filter("fault", "fault.v3.HTTPFault"), routerFilter),
  ],
  [
    "HG404",
    overload,
    overloaded([at90], "envoy.overload_actions.stop_accepting_request"),
    overloaded([at90]),
  ],
  [
    "HG405",
    overload,
    overloaded([{ name: "envoy.resource_monitors.fixed_heaps", threshold: { value: 0.9 } }]),
    overloaded([at90]),
  ],
  [
    "HG406",
    overload,
    overloaded([onHeap({ scaled: { scaling_threshold: 0.9, saturation_threshold: 0.8 } })]),
    overloaded([onHeap({ scaled: { scaling_threshold: 0.8, saturation_threshold: 0.9 } })]),
  ],
  [
    "HG407",
    overload,
    overloaded([at90, onHeap({ threshold: { value: 0.8 } })]),
    overloaded([at90]),
  ],
  [
    "HG408",
    overload,
    { resource_monitors: [heapMonitor(0)] },
    { resource_monitors: [heapMonitor(5)] },
  ],
  [
    "HG409",
    overload,
    {
      resource_monitors: [
        { name: "envoy.resource_monitors.downstream_connections", typed_config: heapTyped() },
      ],
    },
    { resource_monitors: [heapMonitor(5)] },
  ],
  ["HG410", processor, {}, asks],
  [
    "HG411",
    processor,
    { ...asks, processing_mode: { request_body_mode: "FULL_DUPLEX_STREAMED" } },
    {
      ...asks,
      processing_mode: { request_body_mode: "FULL_DUPLEX_STREAMED", request_trailer_mode: "SEND" },
    },
  ],
  [
    "HG412",
    "envoy.config.route.v3.RateLimit.HitsAddend",
    { format: "%BYTES_RECEIVED%%BYTES_SENT%" },
    { format: "%BYTES_RECEIVED%" },
  ],
  [
    "HG413",
    "envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit",
    { stat_prefix: "a", token_bucket: { max_tokens: 1, fill_interval: "0.049s" } },
    { stat_prefix: "a", token_bucket: { max_tokens: 1, fill_interval: "0.05s" } },
  ],
  ["HG414", bootstrap, whole({ clusters: [a, a] }), whole({ clusters: [a] })],
  [
    "HG415",
    gradient,
    { ...defaultGradient, concurrency_limit_params: limits(6, 5) },
    { ...defaultGradient, concurrency_limit_params: limits(5, 5) },
  ],
  [
    "HG416",
    bootstrap,
    whole({
      filters: [filter("ratelimit", "ratelimit.v3.RateLimit", { domain: "a", ...rls })],
      clusters: [{ ...a, name: "b" }],
      route: { cluster: "b" },
    }),
    whole({
      filters: [filter("ratelimit", "ratelimit.v3.RateLimit", { domain: "a", ...rls })],
      clusters: [a],
    }),
  ],
  [
    "HG417",
    overload,
    {
      resource_monitors: [heapMonitor(5)],
      loadshed_points: [{ name: "envoy.load_shed_points.tcp_listener_acept", triggers: [at90] }],
    },
    {
      resource_monitors: [heapMonitor(5)],
      loadshed_points: [{ name: "envoy.load_shed_points.tcp_listener_accept", triggers: [at90] }],
    },
  ],
  [
    "HG418",
    quota,
    quotaOf("no_assignment_behavior", { token_bucket: { max_tokens: 1, fill_interval: "1s" } }),
    quotaOf("no_assignment_behavior", { blanket_rule: "ALLOW_ALL" }),
  ],
  [
    "HG419",
    "envoy.config.route.v3.VirtualHost",
    {
      name: "a",
      domains: ["*"],
      rate_limits: [{ actions: [{ remote_address: {} }], hits_addend: { number: 5 } }],
    },
    { name: "a", domains: ["*"], rate_limits: [{ actions: [{ remote_address: {} }] }] },
  ],
  [
    "HG420",
    "envoy.config.core.v3.RuntimeFractionalPercent",
    { default_value: { numerator: 150, denominator: "HUNDRED" } },
    { default_value: { numerator: 150, denominator: "TEN_THOUSAND" } },
  ],
  [
    "HG421",
    cluster,
    { name: "a", outlier_detection: { consecutive_5xx: 5 } },
    { name: "a", outlier_detection: { consecutive_5xx: 5, max_ejection_percent: 50 } },
  ],
  [
    "HG423",
    cluster,
    { name: "a", circuit_breakers: {} },
    { name: "a", circuit_breakers: {}, outlier_detection: { max_ejection_percent: 50 } },
  ],
  [
    "HG424",
    "envoy.config.route.v3.RetryPolicy",
    { retry_on: "connect-failure,5xx" },
    { retry_on: "connect-failure,refused-stream,reset" },
  ],
  [
    "HG424",
    "envoy.config.route.v3.RetryPolicy",
    { retry_on: "retriable-status-codes", retriable_status_codes: [502, 503] },
    // A gateway that did not answer: no refusal.
    { retry_on: "retriable-status-codes", retriable_status_codes: [502, 504] },
  ],
  [
    "HG426",
    overload,
    {
      resource_monitors: [heapMonitor(5), groupMonitor],
      actions: [
        {
          name: "envoy.overload_actions.reject_incoming_connections",
          triggers: [{ name: groupMonitor.name, threshold: { value: 0.9 } }],
        },
      ],
    },
    {
      resource_monitors: [heapMonitor(4), groupMonitor],
      actions: [
        {
          name: "envoy.overload_actions.reject_incoming_connections",
          triggers: [{ name: groupMonitor.name, threshold: { value: 0.9 } }],
        },
      ],
    },
  ],
  [
    "HG427",
    processor,
    { ...asks, request_attributes: ["request.path", "xds.node"] },
    { ...asks, request_attributes: ["request.path", "xds.route_name"] },
  ],
  [
    "HG428",
    bootstrap,
    whole({
      layers: [graceful],
      filters: [
        filter("ext_proc", "ext_proc.v3.ExternalProcessor", {
          ...asks,
          processing_mode: { response_trailer_mode: "SEND" },
        }),
      ],
      clusters: [a],
    }),
    whole({
      layers: [graceful],
      filters: [
        filter("ext_proc", "ext_proc.v3.ExternalProcessor", {
          ...asks,
          processing_mode: { response_trailer_mode: "SEND" },
        }),
      ],
      clusters: [
        {
          ...a,
          circuit_breakers: { thresholds: [{ max_requests: 10_000 }] },
          outlier_detection: { max_ejection_percent: 50 },
        },
      ],
    }),
  ],
  [
    "HG429",
    quota,
    quotaOf("no_assignment_behavior", {
      requests_per_time_unit: { requests_per_time_unit: 5, time_unit: "SECOND" },
    }),
    quotaOf("no_assignment_behavior", { blanket_rule: "DENY_ALL" }),
  ],
  ["HG430", quota, expiresAfter("2.5s"), expiresAfter("3s")],
  [
    "HG431",
    "envoy.extensions.filters.http.ratelimit.v3.RateLimit",
    { domain: "a", timeout: "0s", ...rls },
    { domain: "a", timeout: "0.02s", ...rls },
  ],
  [
    "HG433",
    bootstrap,
    whole({ filters: [filter("ext_proc", "ext_proc.v3.ExternalProcessor", asks)], clusters: [a] }),
    whole({
      layers: [graceful],
      filters: [filter("ext_proc", "ext_proc.v3.ExternalProcessor", asks)],
      clusters: [a],
    }),
  ],
  [
    "HG434",
    manager,
    chain(admission(), filter("ext_proc", "ext_proc.v3.ExternalProcessor", asks), routerFilter),
    chain(filter("ext_proc", "ext_proc.v3.ExternalProcessor", asks), admission(), routerFilter),
  ],
  ["HG435", strategy, tokensEach("0.5s"), tokensEach("1s")],
  ["HG435", strategy, tokensEach("1.5s"), tokensEach("60s")],
  [
    "HG436",
    `${quota}.ExpiredAssignmentBehavior`,
    { reuse_last_assignment: {} },
    { fallback_rate_limit: { blanket_rule: "DENY_ALL" } },
  ],
  [
    "HG437",
    "envoy.config.route.v3.VirtualHost",
    hostWith(`${types}.filters.http.rate_limit_quota.v3.RateLimitQuotaOverride`, { domain: "a" }),
    hostWith("type.googleapis.com/envoy.config.route.v3.FilterConfig", { config: {} }),
  ],
  [
    "HG438",
    `${quota}.DenyResponseSettings`,
    { http_body: "YQ==", grpc_status: { code: 8, message: "b" } },
    { http_body: "YQ==", grpc_status: { code: 8 } },
  ],
];

function heapTyped(): PlainValue {
  return {
    "@type": `${types}.resource_monitors.fixed_heap.v3.FixedHeapConfig`,
    max_heap_size_bytes: 5,
  };
}

function admission(): PlainValue {
  const success = { http_criteria: { http_success_status: [{ start: 100, end: 400 }] } };
  return filter("admission_control", "admission_control.v3.AdmissionControl", {
    success_criteria: success,
  });
}

function quotaOf(name: string, strategy: PlainValue): PlainValue {
  return {
    bucket_id_builder: { bucket_id_builder: { a: { string_value: "a" } } },
    reporting_interval: "5s",
    [name]: { fallback_rate_limit: strategy },
  };
}

function tokensEach(interval: string): PlainValue {
  return { token_bucket: { max_tokens: 1, tokens_per_fill: 1, fill_interval: interval } };
}

function hostWith(type: string, settings: object): PlainValue {
  const name = "envoy.filters.http.rate_limit_quota";
  const typed_per_filter_config = { [name]: { "@type": type, ...settings } };
  return { name: "a", domains: ["*"], typed_per_filter_config };
}

function expiresAfter(timeout: string): PlainValue {
  return {
    bucket_id_builder: { bucket_id_builder: { a: { string_value: "a" } } },
    reporting_interval: "5s",
    expired_assignment_behavior: {
      expired_assignment_behavior_timeout: timeout,
      fallback_rate_limit: { blanket_rule: "ALLOW_ALL" },
    },
  };
}

function idsOf(on: string, value: PlainValue): readonly string[] {
  const { message, problems } = checkMessage({ message: on, value, path: [] }, api);
  expect(problems).toEqual([]);
  return message === undefined ? [] : runLints(message, allLints).map(({ id }) => id);
}

describe("allLints", () => {
  it.each(cases)("finds %s in %s, and nothing where it is right", (id, on, wrong, right) => {
    expect(idsOf(on, wrong)).toEqual([id]);
    expect(idsOf(on, right)).toEqual([]);
  });

  it("knows of no missing cluster where clusters may come over the wire", () => {
    const value = whole({ route: { cluster: "b" } });
    expect(idsOf(bootstrap, value)).toEqual(["HG402"]);
    expect(idsOf(bootstrap, { ...Object(value), dynamic_resources: {} })).toEqual([]);
    expect(idsOf("envoy.config.route.v3.RouteAction", { cluster: "b" })).toEqual([]);
  });

  it("lets refusals be tried again after their time, within a budget", () => {
    const back_off = { reset_headers: [{ name: "retry-after", format: "SECONDS" }] };
    const retry_policy = { retry_on: "envoy-ratelimited", rate_limited_retry_back_off: back_off };
    const budget = { thresholds: [{ retry_budget: {} }] };
    const guarded = {
      ...a,
      circuit_breakers: budget,
      outlier_detection: { max_ejection_percent: 5 },
    };
    const route = { cluster: "a", retry_policy };
    expect(idsOf(bootstrap, whole({ route, clusters: [a] }))).toEqual(["HG424"]);
    expect(idsOf(bootstrap, whole({ route, clusters: [guarded] }))).toEqual([]);
  });
});
