import type { ServicePolicy } from "../policy/service-policy.js";
import { usualFailurePercentage, usualSlowStart, usualUpgrades } from "../policy/usual-upstream.js";
import type { EnvoyContext } from "./envoy/context.js";
import { formatMinorVersion, isAtLeastVersion } from "./generate-options.js";
import type { MinorVersion } from "./generator.js";

/** What a target makes of an option. */
export type OptionSupport =
  /** The field or object that says it, and from which minor version of 1 on. */
  | { readonly by: string; readonly since?: number }
  /** Why it cannot, as the end of a sentence, and what to do. */
  | { readonly why: string; readonly instead: string };

/** Targets that users may have instead of proxies of ours. */
type OtherTarget = "istio" | "gateway";

/** An option, by what it is in each target. */
export interface OptionRow {
  readonly envoy: string;
  readonly istio: OptionSupport;
  readonly gateway: OptionSupport;
  /** Whether a service says it, so that the target has to be told. */
  readonly isSaid: (service: ServicePolicy) => boolean;
}

const patch = "EnvoyFilter";

/**
 * What a service can be given, by its path in the policy; the docs' table is these rows. A version
 * is the first of those looked at that has it: Envoy Gateway's 1.2, 1.6, 1.8 and 1.9, Istio's 1.22,
 * 1.27 and 1.31.
 *
 * Source: their CustomResourceDefinitions, as `check/schemas` holds them.
 */
export const serviceOptionRows: Readonly<Record<string, OptionRow>> = {
  "upstream.tls": {
    envoy: "`transport_socket`",
    istio: { by: "DestinationRule" },
    gateway: { by: "BackendTLSPolicy" },
    isSaid: ({ upstream }) => upstream?.tls !== undefined,
  },
  upgrades: {
    envoy: "`upgrade_configs` of routes",
    istio: { by: patch },
    gateway: { by: "BackendTrafficPolicy", since: 6 },
    isSaid: ({ upgrades }) => upgrades.join() !== usualUpgrades.join(),
  },
  healthChecks: {
    envoy: "`health_checks`",
    istio: { by: patch },
    gateway: { by: "BackendTrafficPolicy" },
    isSaid: ({ healthChecks }) => healthChecks !== undefined,
  },
  "healthChecks.http.host": {
    envoy: "`http_health_check`",
    istio: { by: patch },
    gateway: { by: "BackendTrafficPolicy", since: 6 },
    isSaid: ({ healthChecks }) => {
      return healthChecks?.probe.kind === "http" && healthChecks.probe.host !== undefined;
    },
  },
  "loadBalancing.healthyPanicThreshold": {
    envoy: "`common_lb_config`",
    istio: { by: patch },
    gateway: { by: "BackendTrafficPolicy", since: 6 },
    isSaid: ({ loadBalancing }) => loadBalancing.panicThresholdPercent !== undefined,
  },
  "loadBalancing.consistentHash": {
    envoy: "`MAGLEV`, and `hash_policy` of routes",
    istio: { by: "DestinationRule" },
    gateway: { by: "BackendTrafficPolicy" },
    isSaid: ({ loadBalancing }) => loadBalancing.hash !== undefined,
  },
  "loadBalancing.consistentHash.queryParameter": {
    envoy: "`hash_policy` of routes",
    istio: { by: "DestinationRule" },
    gateway: { by: "BackendTrafficPolicy", since: 8 },
    isSaid: ({ loadBalancing }) => loadBalancing.hash?.kind === "query",
  },
  "loadBalancing.slowStart": {
    envoy: "`slow_start_config`",
    istio: { by: "DestinationRule" },
    gateway: { by: "BackendTrafficPolicy" },
    isSaid: ({ loadBalancing }) => loadBalancing.slowStart !== undefined,
  },
  "loadBalancing.slowStart.minWeightPercent": {
    envoy: "`min_weight_percent`",
    istio: { by: "DestinationRule", since: 27 },
    gateway: { why: "a new host begins with 10 % there", instead: "leave it out" },
    isSaid: ({ loadBalancing: { slowStart = usualSlowStart } }) => {
      return slowStart.weightPercentMin !== usualSlowStart.weightPercentMin;
    },
  },
  "circuitBreakers.perEndpoint": {
    envoy: "`per_host_thresholds`",
    istio: { by: patch },
    gateway: { by: "BackendTrafficPolicy", since: 6 },
    isSaid: ({ circuitBreakers }) => circuitBreakers.hostConnectionsMax !== undefined,
  },
  "outlierDetection.consecutiveLocalOriginFailure": {
    envoy: "`split_external_local_origin_errors`",
    istio: { by: "DestinationRule" },
    gateway: { by: "BackendTrafficPolicy" },
    isSaid: ({ outlierDetection }) => outlierDetection?.localOriginFailures !== undefined,
  },
  "outlierDetection.failurePercentage": {
    envoy: "`failure_percentage_threshold`",
    istio: { by: patch },
    gateway: { by: "BackendTrafficPolicy", since: 6 },
    isSaid: ({ outlierDetection }) => outlierDetection?.failurePercentage !== undefined,
  },
  "outlierDetection.failurePercentage.minHosts": {
    envoy: "`failure_percentage_minimum_hosts`",
    istio: { by: patch },
    gateway: { why: "it is always 5 there", instead: "leave it out" },
    isSaid: ({ outlierDetection }) => {
      const { hostsMin } = outlierDetection?.failurePercentage ?? usualFailurePercentage;
      return hostsMin !== usualFailurePercentage.hostsMin;
    },
  },
  "outlierDetection.failurePercentage.minRequests": {
    envoy: "`failure_percentage_request_volume`",
    istio: { by: patch },
    gateway: { why: "it is always 50 there", instead: "leave it out" },
    isSaid: ({ outlierDetection }) => {
      const { requestsMin } = outlierDetection?.failurePercentage ?? usualFailurePercentage;
      return requestsMin !== usualFailurePercentage.requestsMin;
    },
  },
  "timeouts.maxStreamDuration": {
    envoy: "`max_stream_duration` of routes",
    istio: { by: patch },
    gateway: { by: "BackendTrafficPolicy", since: 6 },
    isSaid: ({ timeouts }) => timeouts.maxStreamMs !== undefined,
  },
  "timeouts.maxConnectionDuration": {
    envoy: "`max_connection_duration` of clusters",
    istio: { by: "DestinationRule" },
    gateway: { by: "BackendTrafficPolicy" },
    isSaid: ({ timeouts }) => timeouts.maxConnectionMs !== undefined,
  },
  "retries.retriableStatusCodes": {
    envoy: "`retriable_status_codes`",
    istio: { by: "VirtualService" },
    gateway: { by: "BackendTrafficPolicy" },
    isSaid: ({ retries }) => (retries?.retriableStatusCodes.length ?? 0) > 0,
  },
  "retries.perTryIdleTimeout": {
    envoy: "`per_try_idle_timeout`",
    istio: { by: patch },
    gateway: {
      why: "a try has one time there",
      instead: "leave it out: perTryTimeout bounds each try",
    },
    isSaid: ({ retries }) => retries?.perTryIdleMs !== undefined,
  },
};

/** What of the listener can be said, as above; where a target has no words, nothing is said. */
export const listenerOptionRows: Readonly<Record<string, Omit<OptionRow, "isSaid">>> = {
  maxConnections: {
    envoy: "`connection_limit`",
    istio: { by: "ConfigMap of the bootstrap" },
    gateway: { by: "ClientTrafficPolicy" },
  },
  maxConcurrentStreams: {
    envoy: "`http2_protocol_options`",
    istio: { by: patch },
    gateway: { by: "ClientTrafficPolicy" },
  },
  trustedHops: {
    envoy: "`xff_num_trusted_hops`",
    istio: { by: patch },
    gateway: { by: "ClientTrafficPolicy" },
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
    gateway: { by: "ClientTrafficPolicy" },
  },
};

/** Reports what services say that a target, or its version, has no words for. */
export function reportOptions(target: OtherTarget, context: EnvoyContext): void {
  for (const [option, row] of Object.entries(serviceOptionRows)) {
    const support = row[target];
    for (const service of context.policy.services) {
      if (!row.isSaid(service)) continue;
      reportOption({ target, service, option, support }, context);
    }
  }
}

const titles = { istio: "Istio", gateway: "Envoy Gateway" } as const;

function reportOption(
  {
    target,
    service,
    option,
    support,
  }: {
    readonly target: OtherTarget;
    readonly service: ServicePolicy;
    readonly option: string;
    readonly support: OptionSupport;
  },
  { options, report }: EnvoyContext,
): void {
  const version = target === "istio" ? options.istioVersion : options.gatewayVersion;
  const problem = { id: "HG359", spot: { service: service.name, path: option.split(".") } };
  const severity = "error";
  if ("why" in support) {
    const message = `${titles[target]} has no ${option}: ${support.why}`;
    report({ ...problem, message, hint: support.instead, severity });
    return;
  }
  const least: MinorVersion = { major: 1, minor: support.since ?? 0 };
  if (isAtLeastVersion(version, least)) return;
  const message = `${titles[target]} ${formatMinorVersion(version)} has no ${option}`;
  const hint = `--${target}-version ${formatMinorVersion(least)}, or leave it out`;
  report({ ...problem, message, hint, severity });
}
