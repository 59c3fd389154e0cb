import {
  type EnvoyMessage,
  fieldAt,
  isFieldTrue,
  messageAt,
  messagesAt,
  numberField,
  textField,
  textsAt,
} from "./envoy-message.js";
import type { Lint, LintScope } from "./lint.js";

const http = "envoy.extensions.filters.http";
const manager = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
const httpFilter = "envoy.extensions.filters.network.http_connection_manager.v3.HttpFilter";

/** Configuration type of each HTTP filter that a policy needs. */
const filterTypes: ReadonlyMap<string, string> = new Map([
  [
    "envoy.filters.http.adaptive_concurrency",
    `${http}.adaptive_concurrency.v3.AdaptiveConcurrency`,
  ],
  ["envoy.filters.http.admission_control", `${http}.admission_control.v3.AdmissionControl`],
  ["envoy.filters.http.ext_proc", `${http}.ext_proc.v3.ExternalProcessor`],
  ["envoy.filters.http.fault", `${http}.fault.v3.HTTPFault`],
  ["envoy.filters.http.local_ratelimit", `${http}.local_ratelimit.v3.LocalRateLimit`],
  ["envoy.filters.http.rate_limit_quota", `${http}.rate_limit_quota.v3.RateLimitQuotaFilterConfig`],
  ["envoy.filters.http.ratelimit", `${http}.ratelimit.v3.RateLimit`],
  ["envoy.filters.http.router", `${http}.router.v3.Router`],
]);

/** Filters that refuse requests themselves. */
const refusers = [
  `${http}.local_ratelimit.v3.LocalRateLimit`,
  `${http}.ratelimit.v3.RateLimit`,
  `${http}.ext_proc.v3.ExternalProcessor`,
  `${http}.adaptive_concurrency.v3.AdaptiveConcurrency`,
];

/** Maximum time that a rate limit's answer should be waited for, in seconds. */
const answerSecondsMax = 1;

/** Minimum time between two fills of a local bucket, in seconds. Source: Envoy. */
const fillSecondsMin = 0.05;

/** Lints of HTTP filters and their order. */
export const filterLints: readonly Lint[] = [
  { on: httpFilter, check: checkFilterType },
  { on: manager, check: checkFilterOrder },
  { on: `${http}.adaptive_concurrency.v3.GradientControllerConfig`, check: checkGradient },
  { on: `${http}.ext_proc.v3.ExternalProcessor`, check: checkProcessor },
  { on: `${http}.ext_proc.v3.ProcessingMode`, check: checkProcessingMode },
  { on: `${http}.local_ratelimit.v3.LocalRateLimit`, check: checkLocalRateLimit },
  { on: `${http}.ratelimit.v3.RateLimit`, check: checkRateLimit },
  { on: "envoy.config.route.v3.RateLimit.HitsAddend", check: checkHits },
  { on: "envoy.config.route.v3.VirtualHost", check: checkIgnoredHits },
  { on: "envoy.config.route.v3.RouteAction", check: checkIgnoredHits },
];

function checkFilterType(filter: EnvoyMessage, { report }: LintScope): void {
  const name = textField(filter, "name") ?? "";
  const wanted = filterTypes.get(name);
  const found = messageAt(filter, "typed_config")?.desc.typeName;
  if (wanted === undefined || found === undefined || found === wanted) return;
  const message = `${name} has the configuration of ${found}`;
  report({ id: "HG400", path: filter.path, message, hint: `its own is ${wanted}` });
}

function checkFilterOrder(message: EnvoyMessage, { report }: LintScope): void {
  const filters = messagesAt(message, "http_filters");
  // Patches and fragments have no filter chain of their own.
  if (filters.length === 0) return;
  const types = filters.map((filter) => messageAt(filter, "typed_config")?.desc.typeName ?? "");
  const router = types.indexOf(`${http}.router.v3.Router`);
  if (router !== types.length - 1) {
    const path = [...message.path, "http_filters"];
    const text = router === -1 ? "there is no router filter" : "filters come after the router";
    report({ id: "HG403", path, message: text, hint: "put the router last" });
  }
  const admission = types.indexOf(`${http}.admission_control.v3.AdmissionControl`);
  const behind =
    admission === -1 ? [] : types.slice(admission).filter((type) => refusers.includes(type));
  const [first] = behind;
  if (first === undefined) return;
  report({
    id: "HG434",
    path: [...message.path, "http_filters"],
    message: `${first} refuses requests after admission control, which counts them as failures`,
    hint: "put admission control after it",
  });
}

function checkGradient(message: EnvoyMessage, { report }: LintScope): void {
  const minRtt = messageAt(message, "min_rtt_calc_params");
  if (minRtt !== undefined && !minRtt.fields.has("interval") && !minRtt.fields.has("fixed_value")) {
    const text = "the minimum latency is neither measured nor set";
    report({
      id: "HG401",
      path: minRtt.path,
      message: text,
      hint: "set interval or fixed_value",
    });
  }
  const limits = messageAt(message, "concurrency_limit_params");
  const [least, most] = [
    numberField(limits, "min_concurrency_limit"),
    numberField(limits, "max_concurrency_limit"),
  ];
  if (limits === undefined || least === undefined || most === undefined || least <= most) return;
  const text = `the minimum limit, ${least}, is above the maximum, ${most}`;
  report({ id: "HG415", path: limits.path, message: text, hint: `write at most ${most}` });
}

function checkProcessor(message: EnvoyMessage, scope: LintScope): void {
  const { report } = scope;
  if (!message.fields.has("grpc_service") && !message.fields.has("http_service")) {
    const text = "no service is called";
    report({ id: "HG410", path: message.path, message: text, hint: "set grpc_service" });
  }
  for (const name of ["request_attributes", "response_attributes"]) {
    if (!textsAt(message, name).includes("xds.node")) continue;
    const text = `${name} requests xds.node`;
    report({ id: "HG427", path: [...message.path, name], message: text, hint: "remove it" });
  }
  if (scope.clusters === undefined || isClosedGracefully(scope.root)) return;
  report({
    id: "HG433",
    path: message.path,
    message: "Envoy resets the stream of every request",
    hint: `set ${gracefulClose} to true`,
  });
}

const gracefulClose = "envoy.reloadable_features.ext_proc_graceful_grpc_close";

function isClosedGracefully(root: EnvoyMessage): boolean {
  return messagesAt(root, "layered_runtime", "layers").some((layer) => {
    const layerValue = fieldAt(layer, "static_layer");
    if (layerValue?.kind !== "json") return false;
    return JSON.stringify(layerValue.value).includes("ext_proc_graceful_grpc_close");
  });
}

function checkProcessingMode(message: EnvoyMessage, { report }: LintScope): void {
  for (const direction of ["request", "response"]) {
    if (textField(message, `${direction}_body_mode`) !== "FULL_DUPLEX_STREAMED") continue;
    const name = `${direction}_trailer_mode`;
    if (textField(message, name) === "SEND") continue;
    const text = `${direction}_body_mode is FULL_DUPLEX_STREAMED, and ${name} is not SEND`;
    report({ id: "HG411", path: message.path, message: text, hint: `write ${name}: SEND` });
  }
}

function checkLocalRateLimit(message: EnvoyMessage, { report }: LintScope): void {
  const seconds = numberField(message, "token_bucket", "fill_interval");
  if (seconds === undefined || seconds >= fillSecondsMin) return;
  const path = [...message.path, "token_bucket", "fill_interval"];
  const text = `fill_interval is ${seconds}s`;
  report({ id: "HG413", path, message: text, hint: `set it to at least ${fillSecondsMin}s` });
}

function checkRateLimit(message: EnvoyMessage, { report }: LintScope): void {
  const seconds = numberField(message, "timeout");
  if (seconds === undefined || (seconds > 0 && seconds <= answerSecondsMax)) return;
  report({
    id: "HG431",
    path: [...message.path, "timeout"],
    message: seconds === 0 ? "timeout 0s waits forever" : `timeout is ${seconds}s`,
    hint: `set more than 0s, at most ${answerSecondsMax}s`,
  });
}

function checkHits(message: EnvoyMessage, { report }: LintScope): void {
  const format = textField(message, "format");
  if (format === undefined || /^%[^%]+%$/.test(format)) return;
  const path = [...message.path, "format"];
  const text = "the format is not a single substitution";
  report({ id: "HG412", path, message: text, hint: "write one, such as %BYTES_RECEIVED%" });
}

/** Hits are honored in the filter's own `rate_limits` and under typed_per_filter_config only. */
function checkIgnoredHits(message: EnvoyMessage, { report }: LintScope): void {
  for (const limit of messagesAt(message, "rate_limits")) {
    if (!limit.fields.has("hits_addend")) continue;
    const isRefund = isFieldTrue(limit, "hits_addend", "is_negative_hits");
    const text = isRefund
      ? "here the refund counts as a hit"
      : "here the number of hits is ignored";
    const hint = "move it to typed_per_filter_config";
    report({ id: "HG419", path: [...limit.path, "hits_addend"], message: text, hint });
  }
}
