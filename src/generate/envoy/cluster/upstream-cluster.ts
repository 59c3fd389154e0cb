import { assert } from "../../../core/base/errors.js";
import type { ServicePolicy } from "../../../policy/services/service-policy.js";
import { noted, type Tree, type TreeMap } from "../../base/document.js";
import type { EnvoyContext } from "../base/context.js";
import { isHeldHere } from "../base/sides.js";
import { tlsSocket } from "../base/tls-socket.js";
import {
  durationText,
  httpProtocolOptions,
  loadAssignment,
  socketAddress,
} from "../base/values.js";
import { circuitBreakersTree, openBreakers } from "./circuit-breakers.js";
import { healthCheckTrees } from "./health-checks.js";
import { clusterBalancing } from "./load-balancing.js";
import { outlierDetectionTree } from "./outlier-detection.js";

/**
 * The cluster's name in a proxy. What a sidecar's own service runs in has another one where its
 * callers hold its protections: Headgate counts, and drives, the clusters of the service's name.
 */
export function clusterName(service: ServicePolicy, context: EnvoyContext): string {
  return isHeldHere(service, context) ? service.name : `local_${service.name}`;
}

/** Why a service has no cluster; reported once for each service and proxy. */
function reportNoUpstream({ name }: ServicePolicy, context: EnvoyContext): void {
  const isFragment = context.options.form === "fragments";
  context.report({
    id: isFragment ? "HG302" : "HG301",
    spot: { service: name, path: ["upstream"] },
    message: isFragment
      ? "the service has no upstream, so its cluster, with breakers and outlier " +
        "detection, is left out"
      : "the service has no upstream, and a complete proxy needs its address",
    hint: isFragment
      ? "add upstream: {address, port}, or merge these settings into your cluster yourself"
      : "add upstream: {address, port}, or generate fragments",
  });
}

/**
 * The clusters of a service: where it is, how much it may take, and when a host is left out. One in
 * a proxy of ours; in fragments one for each name that the policy says, to be merged with those.
 * None where the policy does not say where it is, which is reported.
 *
 * Source: envoy.config.cluster.v3.Cluster.
 */
export function serviceClusters(service: ServicePolicy, context: EnvoyContext): readonly Tree[] {
  if (service.upstream === undefined) {
    reportNoUpstream(service, context);
    return [];
  }
  const name = clusterName(service, context);
  const isMerged = context.options.form === "fragments" && name === service.name;
  const names = isMerged ? [...new Set([name, ...service.clusters])] : [name];
  return names.map((one) => serviceCluster(one, service, context));
}

function serviceCluster(name: string, service: ServicePolicy, context: EnvoyContext): Tree {
  const { upstream, timeouts } = service;
  assert(upstream !== undefined, "a service without an upstream has no cluster");
  const isOwn = context.role === "sidecar" && context.side === "inbound";
  const isHeld = isHeldHere(service, context);
  const address = isOwn ? "127.0.0.1" : upstream.address;
  return {
    name,
    type: isOwn ? noted("The service that runs next to this proxy.", "STATIC") : "STRICT_DNS",
    dns_lookup_family: isOwn ? undefined : "V4_PREFERRED",
    connect_timeout: durationText(timeouts.connectMs),
    ...(isOwn ? {} : clusterBalancing(service.loadBalancing)),
    circuit_breakers: isHeld
      ? circuitBreakersTree(service, context)
      : noted("No limits here: the proxies of its callers enforce them.", openBreakers()),
    health_checks: isOwn || !isHeld ? undefined : healthCheckTrees(service),
    outlier_detection: outliers(service, { isOwn, isHeld }),
    transport_socket: upstream.tls && tlsSocket(upstream.tls, context.policy.proxies),
    typed_extension_protocol_options: upstreamProtocol(service, context),
    load_assignment: loadAssignment(name, socketAddress(address, upstream.port)),
  };
}

/** With a single host, the one beside the proxy, there is nowhere else to go. */
function outliers(
  { outlierDetection: policy }: ServicePolicy,
  { isOwn, isHeld }: { readonly isOwn: boolean; readonly isHeld: boolean },
): TreeMap | undefined {
  return policy === undefined || isOwn || !isHeld ? undefined : outlierDetectionTree(policy);
}

/** Which HTTP the service is called in; gRPC needs HTTP/2. */
function upstreamProtocol(service: ServicePolicy, context: EnvoyContext): TreeMap {
  const { maxConnectionMs } = service.timeouts;
  return httpProtocolOptions({
    common_http_protocol_options: maxConnectionMs && {
      max_connection_duration: durationText(maxConnectionMs),
    },
    ...protocolConfig(service, context),
  });
}

/** Usage may come in trailers, which HTTP/1 has only where it is told. */
function http1For({ usage }: ServicePolicy): TreeMap {
  const isInTrailers = usage?.source.kind === "headers";
  return { http_protocol_options: isInTrailers ? { enable_trailers: true } : {} };
}

const http2: TreeMap = {
  http2_protocol_options: {
    // Notices a host that vanished without a word.
    connection_keepalive: { interval: "30s", timeout: "5s" },
  },
};

/**
 * Callers in plaintext speak HTTP/2 where their service does, as for gRPC; over TLS nearly all do,
 * whatever the service speaks.
 */
function protocolConfig(service: ServicePolicy, { policy, side }: EnvoyContext): TreeMap {
  const { upstream, healthChecks } = service;
  const http1 = http1For(service);
  if (upstream?.protocol === "http1") return { explicit_http_config: http1 };
  if (upstream?.protocol === "http2") return { explicit_http_config: http2 };
  const isOverTls = policy.proxies.listener.tls !== undefined && side === "inbound";
  if (!isOverTls) return { use_downstream_protocol_config: { ...http1, ...http2 } };
  if (healthChecks?.probe.kind === "grpc") return { explicit_http_config: http2 };
  if (upstream?.tls !== undefined) return { auto_config: { ...http1, ...http2 } };
  return { explicit_http_config: http1 };
}
