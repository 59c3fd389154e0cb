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
 * Returns the name of a service's cluster in a proxy. In its own sidecar it has another name if its
 * callers enforce its limits, since Headgate counts and drives clusters by the service's name.
 */
export function clusterName(service: ServicePolicy, context: EnvoyContext): string {
  return isHeldHere(service, context) ? service.name : `local_${service.name}`;
}

/** Reports why a service has no cluster, once for each service and proxy. */
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
 * Returns the clusters of a service: its address, its limits and its outlier detection. Our proxies
 * have one. Fragments have one for each name in the policy, to merge with the existing clusters. If
 * the policy has no address, this is reported and there are none.
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

/** If the only host is the one next to the proxy, there is no other host to use. */
function outliers(
  { outlierDetection: policy }: ServicePolicy,
  { isOwn, isHeld }: { readonly isOwn: boolean; readonly isHeld: boolean },
): TreeMap | undefined {
  return policy === undefined || isOwn || !isHeld ? undefined : outlierDetectionTree(policy);
}

/** Returns the version of HTTP to call the service with. gRPC needs HTTP/2. */
function upstreamProtocol(service: ServicePolicy, context: EnvoyContext): TreeMap {
  const { maxConnectionMs } = service.timeouts;
  return httpProtocolOptions({
    common_http_protocol_options: maxConnectionMs && {
      max_connection_duration: durationText(maxConnectionMs),
    },
    ...protocolConfig(service, context),
  });
}

/** Usage may be in trailers, which HTTP/1 only supports if they are enabled. */
function http1For({ usage }: ServicePolicy): TreeMap {
  const isInTrailers = usage?.source.kind === "headers";
  return { http_protocol_options: isInTrailers ? { enable_trailers: true } : {} };
}

const http2: TreeMap = {
  http2_protocol_options: {
    // Detects a host that disappears without closing its connections.
    connection_keepalive: { interval: "30s", timeout: "5s" },
  },
};

/**
 * Plaintext callers use HTTP/2 if the service does, as for gRPC. Over TLS, nearly all callers use
 * HTTP/2, whatever the service supports.
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
