import type { ListenerPolicy } from "../../../policy/proxies/proxies.js";
import type { ServicePolicy } from "../../../policy/services/service-policy.js";
import { defaultBlocks } from "../../../policy/upstream/default-upstream.js";
import { defaultSlowStart, defaultZoneAware } from "../../../policy/upstream/load-balancing.js";
import { defaultFailurePercentage } from "../../../policy/upstream/outlier-detection.js";
import { formatMinorVersion, isAtLeastVersion } from "../../base/generate-options.js";
import type { GenerateProblem, MinorVersion } from "../../base/generator.js";
import type { EnvoyContext } from "./context.js";

/** How a target supports an option. */
export type OptionSupport =
  /**
   * The object that sets it, and the first minor version of 1 that has it. `field` is its place in
   * the `spec`, as names through lists. A test checks it against all versions' definitions.
   */
  | { readonly by: string; readonly since?: number; readonly field?: string }
  /** Why the target does not support it, as the end of a sentence, and what to do instead. */
  | { readonly why: string; readonly instead: string };

/** Targets whose proxies are not ours. */
export type OtherTarget = "istio" | "gateway";

/** An option, and how each target expresses it. */
export interface OptionSupportRow {
  readonly envoy: string;
  readonly istio: OptionSupport;
  readonly gateway: OptionSupport;
  /** Reports whether a service sets it. Undefined: the code that makes the objects reports it. */
  readonly isSaid?: (service: ServicePolicy) => boolean;
}

/** An option of the listener. */
interface ListenerOptionRow extends Omit<OptionSupportRow, "isSaid"> {
  /** As above, for options without which proxies would admit excluded callers, and for HTTP/3. */
  readonly isSaid?: (listener: ListenerPolicy) => boolean;
}

const patch = "EnvoyFilter";

const servicePort = {
  why: "it uses the protocol of the Service's port",
  instead: "leave it out, and set appProtocol on the Service's port (kubernetes.io/h2c for http2)",
} as const;

const evenChecks = {
  why: "all of its health checks have the same interval",
  instead: "leave it out; initialJitter spreads the checks of several proxies",
} as const;

/**
 * Options of a service by their path in the policy. The table in the docs is made from these rows.
 * A version is the first with the option. For Istio, only 1.22, 1.27 and 1.31 were examined.
 *
 * Source: their CustomResourceDefinitions, as `check/schemas` holds them.
 */
export const serviceOptionRows: Readonly<Record<string, OptionSupportRow>> = {
  "upstream.tls": {
    envoy: "`transport_socket`",
    istio: { by: "DestinationRule", field: "trafficPolicy.tls" },
    gateway: { by: "BackendTLSPolicy", field: "validation.hostname" },
    isSaid: ({ upstream }) => upstream?.tls !== undefined,
  },
  "upstream.tls.secret": {
    envoy: "SDS, `path_config_source`",
    istio: { by: "DestinationRule, at gateways", field: "trafficPolicy.tls.credentialName" },
    gateway: { by: "BackendTLSPolicy", field: "validation.caCertificateRefs" },
    isSaid: ({ upstream }) => upstream?.tls?.kind === "secret",
  },
  "upstream.protocol": {
    envoy: "`explicit_http_config`",
    istio: { by: "DestinationRule", field: "trafficPolicy.connectionPool.http.h2UpgradePolicy" },
    gateway: servicePort,
    isSaid: ({ upstream }) => upstream?.protocol !== undefined,
  },
  upgrades: {
    envoy: "`upgrade_configs` of routes",
    istio: { by: patch },
    gateway: { by: "BackendTrafficPolicy", since: 4, field: "httpUpgrade" },
    isSaid: ({ upgrades }) => upgrades.join() !== defaultBlocks.upgrades.join(),
  },
  healthChecks: {
    envoy: "`health_checks`",
    istio: { by: patch },
    gateway: { by: "BackendTrafficPolicy", field: "healthCheck.active" },
    isSaid: ({ healthChecks }) => healthChecks !== undefined,
  },
  "healthChecks.http.host": {
    envoy: "`http_health_check`",
    istio: { by: patch },
    gateway: { by: "BackendTrafficPolicy", since: 5, field: "healthCheck.active.http.hostname" },
    isSaid: ({ healthChecks }) => {
      return healthChecks?.probe.kind === "http" && healthChecks.probe.host !== undefined;
    },
  },
  "healthChecks.initialJitter": {
    envoy: "`initial_jitter`",
    istio: { by: patch },
    gateway: { by: "BackendTrafficPolicy", since: 5, field: "healthCheck.active.initialJitter" },
    isSaid: ({ healthChecks }) => healthChecks?.initialJitterMs !== undefined,
  },
  "healthChecks.intervalJitter": {
    envoy: "`interval_jitter`",
    istio: { by: patch },
    gateway: evenChecks,
    isSaid: ({ healthChecks }) => healthChecks?.intervalJitterMs !== undefined,
  },
  "healthChecks.unhealthyInterval": {
    envoy: "`unhealthy_interval`",
    istio: { by: patch },
    gateway: evenChecks,
    isSaid: ({ healthChecks }) => healthChecks?.unhealthyIntervalMs !== undefined,
  },
  "loadBalancing.healthyPanicThreshold": {
    envoy: "`common_lb_config`",
    istio: { by: patch },
    gateway: { by: "BackendTrafficPolicy", since: 4, field: "healthCheck.panicThreshold" },
    isSaid: ({ loadBalancing }) => loadBalancing.panicThresholdPercent !== undefined,
  },
  "loadBalancing.consistentHash": {
    envoy: "`MAGLEV`, and `hash_policy` of routes",
    istio: { by: "DestinationRule", field: "trafficPolicy.loadBalancer.consistentHash" },
    gateway: { by: "BackendTrafficPolicy", field: "loadBalancer.consistentHash" },
    isSaid: ({ loadBalancing }) => loadBalancing.hash !== undefined,
  },
  "loadBalancing.consistentHash.queryParameter": {
    envoy: "`hash_policy` of routes",
    istio: {
      by: "DestinationRule",
      field: "trafficPolicy.loadBalancer.consistentHash.httpQueryParameterName",
    },
    gateway: {
      by: "BackendTrafficPolicy",
      since: 7,
      field: "loadBalancer.consistentHash.queryParams",
    },
    isSaid: ({ loadBalancing }) => loadBalancing.hash?.kind === "query",
  },
  "loadBalancing.slowStart": {
    envoy: "`slow_start_config`",
    istio: { by: "DestinationRule", field: "trafficPolicy.loadBalancer.warmupDurationSecs" },
    gateway: { by: "BackendTrafficPolicy", field: "loadBalancer.slowStart" },
    isSaid: ({ loadBalancing }) => loadBalancing.slowStart !== undefined,
  },
  "loadBalancing.slowStart.minWeightPercent": {
    envoy: "`min_weight_percent`",
    istio: {
      by: "DestinationRule",
      since: 27,
      field: "trafficPolicy.loadBalancer.warmup.minimumPercent",
    },
    gateway: { why: "a new host starts with 10 % there", instead: "remove it" },
    isSaid: ({ loadBalancing: { slowStart = defaultSlowStart } }) => {
      return slowStart.weightPercentMin !== defaultSlowStart.weightPercentMin;
    },
  },
  "loadBalancing.zoneAware": {
    envoy: "`zone_aware_lb_config`, in fragments",
    istio: { by: "DestinationRule", field: "trafficPolicy.loadBalancer.localityLbSetting.enabled" },
    gateway: { by: "BackendTrafficPolicy", since: 5, field: "loadBalancer.zoneAware.preferLocal" },
    isSaid: ({ loadBalancing }) => loadBalancing.zoneAware !== undefined,
  },
  "loadBalancing.zoneAware.minClusterSize": {
    envoy: "`min_cluster_size`",
    istio: {
      why: "requests stay in their zone there while its hosts are healthy",
      instead: "remove it",
    },
    gateway: {
      by: "BackendTrafficPolicy",
      since: 5,
      field: "loadBalancer.zoneAware.preferLocal.minEndpointsThreshold",
    },
    isSaid: ({ loadBalancing: { zoneAware = defaultZoneAware } }) => {
      return zoneAware.clusterSizeMin !== defaultZoneAware.clusterSizeMin;
    },
  },
  circuitBreakers: {
    envoy: "`thresholds`",
    istio: { by: "DestinationRule", field: "trafficPolicy.connectionPool" },
    gateway: { by: "BackendTrafficPolicy", field: "circuitBreaker" },
  },
  "circuitBreakers.retryBudget": {
    envoy: "`retry_budget`",
    istio: { by: "DestinationRule", since: 27, field: "trafficPolicy.retryBudget" },
    gateway: { by: "BackendTrafficPolicy", since: 8, field: "circuitBreaker.retryBudget" },
  },
  "circuitBreakers.perEndpoint": {
    envoy: "`per_host_thresholds`",
    istio: { by: patch },
    gateway: { by: "BackendTrafficPolicy", since: 4, field: "circuitBreaker.perEndpoint" },
    isSaid: ({ circuitBreakers }) => circuitBreakers.hostConnectionsMax !== undefined,
  },
  outlierDetection: {
    envoy: "`outlier_detection`",
    istio: { by: "DestinationRule", field: "trafficPolicy.outlierDetection" },
    gateway: { by: "BackendTrafficPolicy", field: "healthCheck.passive" },
  },
  "outlierDetection.maxEjectionTime": {
    envoy: "`max_ejection_time`",
    istio: { by: patch },
    gateway: { why: "it is always 300 s there", instead: "remove it" },
  },
  "outlierDetection.successRate": {
    envoy: "`success_rate_*`",
    istio: { by: patch },
    gateway: { why: "it counts consecutive failures", instead: "remove it" },
  },
  "outlierDetection.consecutiveLocalOriginFailure": {
    envoy: "`split_external_local_origin_errors`",
    istio: {
      by: "DestinationRule",
      field: "trafficPolicy.outlierDetection.consecutiveLocalOriginFailures",
    },
    gateway: {
      by: "BackendTrafficPolicy",
      field: "healthCheck.passive.consecutiveLocalOriginFailures",
    },
    isSaid: ({ outlierDetection }) => outlierDetection?.localOriginFailures !== undefined,
  },
  "outlierDetection.failurePercentage": {
    envoy: "`failure_percentage_threshold`",
    istio: { by: patch },
    gateway: {
      by: "BackendTrafficPolicy",
      since: 6,
      field: "healthCheck.passive.failurePercentageThreshold",
    },
    isSaid: ({ outlierDetection }) => outlierDetection?.failurePercentage !== undefined,
  },
  "outlierDetection.failurePercentage.minHosts": {
    envoy: "`failure_percentage_minimum_hosts`",
    istio: { by: patch },
    gateway: { why: "it is always 5 there", instead: "remove it" },
    isSaid: ({ outlierDetection }) => {
      const { hostsMin } = outlierDetection?.failurePercentage ?? defaultFailurePercentage;
      return hostsMin !== defaultFailurePercentage.hostsMin;
    },
  },
  "outlierDetection.failurePercentage.minRequests": {
    envoy: "`failure_percentage_request_volume`",
    istio: { by: patch },
    gateway: { why: "it is always 50 there", instead: "remove it" },
    isSaid: ({ outlierDetection }) => {
      const { requestsMin } = outlierDetection?.failurePercentage ?? defaultFailurePercentage;
      return requestsMin !== defaultFailurePercentage.requestsMin;
    },
  },
  "timeouts.request": {
    envoy: "`timeout` of routes",
    istio: { by: "VirtualService", field: "http.timeout" },
    gateway: { by: "BackendTrafficPolicy", field: "timeout.http.requestTimeout" },
  },
  "timeouts.connect": {
    envoy: "`connect_timeout`",
    istio: { by: "DestinationRule", field: "trafficPolicy.connectionPool.tcp.connectTimeout" },
    gateway: { by: "BackendTrafficPolicy", field: "timeout.tcp.connectTimeout" },
  },
  "timeouts.idle": {
    envoy: "`idle_timeout` of routes",
    istio: { by: patch },
    gateway: { by: "BackendTrafficPolicy", since: 8, field: "timeout.http.streamIdleTimeout" },
  },
  "timeouts.maxStreamDuration": {
    envoy: "`max_stream_duration` of routes",
    istio: { by: patch },
    gateway: { by: "BackendTrafficPolicy", since: 6, field: "timeout.http.maxStreamDuration" },
    isSaid: ({ timeouts }) => timeouts.maxStreamMs !== undefined,
  },
  "timeouts.maxConnectionDuration": {
    envoy: "`max_connection_duration` of clusters",
    istio: {
      by: "DestinationRule",
      field: "trafficPolicy.connectionPool.tcp.maxConnectionDuration",
    },
    gateway: { by: "BackendTrafficPolicy", field: "timeout.http.maxConnectionDuration" },
    isSaid: ({ timeouts }) => timeouts.maxConnectionMs !== undefined,
  },
  retries: {
    envoy: "`retry_policy`",
    istio: { by: "VirtualService", field: "http.retries" },
    gateway: { by: "BackendTrafficPolicy", field: "retry" },
  },
  "retries.backOff": {
    envoy: "`retry_back_off`",
    istio: { by: patch },
    gateway: { by: "BackendTrafficPolicy", field: "retry.perRetry.backOff" },
  },
  "retries.maxRetryAfter": {
    envoy: "`rate_limited_retry_back_off`",
    istio: { by: patch },
    gateway: { why: "refused requests are not retried there", instead: "remove it" },
  },
  "retries.retriableStatusCodes": {
    envoy: "`retriable_status_codes`",
    istio: { by: "VirtualService", field: "http.retries.retryOn" },
    gateway: { by: "BackendTrafficPolicy", field: "retry.retryOn.httpStatusCodes" },
    isSaid: ({ retries }) => (retries?.retriableStatusCodes.length ?? 0) > 0,
  },
  "retries.perTryIdleTimeout": {
    envoy: "`per_try_idle_timeout`",
    istio: { by: patch },
    gateway: {
      why: "a try has a single timeout there",
      instead: "leave it out: perTryTimeout bounds each try",
    },
    isSaid: ({ retries }) => retries?.perTryIdleMs !== undefined,
  },
  "retries.hedging": {
    envoy: "`hedge_policy` of routes",
    istio: { by: patch },
    gateway: { why: "a try that takes too long ends there", instead: "remove it" },
    isSaid: ({ retries }) => retries?.hedging !== undefined,
  },
};

const istioTls = {
  why: "Headgate does not generate the listeners of its gateway",
  instead: "leave it out, and set tls on the servers of your Gateway (mode, credentialName)",
} as const;

/**
 * Options of the listener, as above. Unsupported options are ignored silently, except for TLS and
 * HTTP/3.
 */
export const listenerOptionRows: Readonly<Record<string, ListenerOptionRow>> = {
  statisticsPort: {
    envoy: "a listener of its own",
    istio: { why: "its proxies already have one", instead: "remove it" },
    gateway: { why: "its proxies already have one", instead: "remove it" },
  },
  maxConnections: {
    envoy: "`connection_limit`",
    istio: { by: "ConfigMap of the bootstrap" },
    gateway: { by: "ClientTrafficPolicy", field: "connection.connectionLimit" },
  },
  maxConcurrentStreams: {
    envoy: "`http2_protocol_options`",
    istio: { by: patch },
    gateway: { by: "ClientTrafficPolicy", field: "http2.maxConcurrentStreams" },
  },
  trustedHops: {
    envoy: "`xff_num_trusted_hops`",
    istio: { by: patch },
    gateway: { by: "ClientTrafficPolicy", field: "clientIPDetection.xForwardedFor.numTrustedHops" },
  },
  maxRequestHeadersKb: {
    envoy: "`max_request_headers_kb`",
    istio: { by: patch },
    gateway: { by: "EnvoyPatchPolicy" },
  },
  maxHeadersCount: {
    envoy: "`max_headers_count`",
    istio: { by: patch },
    gateway: { by: "EnvoyPatchPolicy" },
  },
  maxConnectionDuration: {
    envoy: "`max_connection_duration` of listeners",
    istio: { by: patch },
    gateway: { by: "EnvoyPatchPolicy" },
  },
  pathWithEscapedSlashesAction: {
    envoy: "`path_with_escaped_slashes_action`",
    istio: { by: patch },
    gateway: { by: "ClientTrafficPolicy", field: "path.escapedSlashesAction" },
  },
  tls: {
    envoy: "`DownstreamTlsContext`",
    istio: istioTls,
    gateway: { by: "ClientTrafficPolicy", field: "tls.minVersion" },
    isSaid: ({ tls }) => tls !== undefined,
  },
  http3: {
    envoy: "`udp_listener_config`, `alt-svc`",
    istio: {
      why: "Headgate does not generate the listeners of its gateway",
      instead: "remove it",
    },
    gateway: { by: "ClientTrafficPolicy", field: "http3" },
    isSaid: ({ http3 }) => http3 !== undefined,
  },
  "tls.certFile": {
    envoy: "`tls_certificates`",
    istio: istioTls,
    gateway: {
      why: "certificates are Secrets that the Gateway's listeners refer to",
      instead: "tls: {secret: NAME}, and the same Secret in certificateRefs of your Gateway",
    },
    isSaid: ({ tls }) => tls?.kind === "files",
  },
  "tls.secret": {
    envoy: "SDS, `path_config_source`",
    istio: istioTls,
    gateway: { by: "ClientTrafficPolicy", field: "tls.clientValidation.caCertificateRefs" },
  },
  "tls.subjectAltNames": {
    envoy: "`match_typed_subject_alt_names`",
    istio: istioTls,
    gateway: { by: "ClientTrafficPolicy", since: 5, field: "tls.clientValidation.subjectAltNames" },
    isSaid: ({ tls }) => (tls?.subjectAltNames.length ?? 0) > 0,
  },
};

/** Reports options of a policy that a target, or its version, does not support. */
export function reportOptions(target: OtherTarget, context: EnvoyContext): void {
  const { services, proxies } = context.policy;
  for (const [option, row] of Object.entries(serviceOptionRows)) {
    for (const { name } of row.isSaid === undefined ? [] : services.filter(row.isSaid)) {
      const spot = { service: name, path: option.split(".") };
      reportOption({ target, option, spot, support: row[target] }, context);
    }
  }
  for (const [name, row] of Object.entries(listenerOptionRows)) {
    if (row.isSaid?.(proxies.listener) !== true) continue;
    const wider = listenerOptionRows[name.split(".")[0] ?? ""];
    if (wider !== row && wider?.[target] === row[target]) continue;
    const path = ["proxies", "listener", ...name.split(".")];
    const spot = { service: undefined, path };
    reportOption({ target, option: path.join("."), spot, support: row[target] }, context);
  }
}

const titles = { istio: "Istio", gateway: "Envoy Gateway" } as const;

/** Reports an option if a target, or its version, does not support it. */
export function reportOption(
  {
    target,
    option,
    spot,
    support,
  }: {
    readonly target: OtherTarget;
    readonly option: string;
    readonly spot: GenerateProblem["spot"];
    readonly support: OptionSupport;
  },
  { options, report }: EnvoyContext,
): void {
  const version = target === "istio" ? options.istioVersion : options.gatewayVersion;
  const problem = { id: "HG359", spot } as const;
  if ("why" in support) {
    const message = `${titles[target]} does not support ${option}: ${support.why}`;
    report({ ...problem, message, hint: support.instead });
    return;
  }
  const least: MinorVersion = { major: 1, minor: support.since ?? 0 };
  if (isAtLeastVersion(version, least)) return;
  const message = `${titles[target]} ${formatMinorVersion(version)} does not support ${option}`;
  const hint = `--${target}-version ${formatMinorVersion(least)}, or leave it out`;
  report({ ...problem, message, hint });
}
