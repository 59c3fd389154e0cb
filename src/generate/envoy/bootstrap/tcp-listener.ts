import type { ConnectionPart, TcpListenerPolicy } from "../../../policy/proxies/tcp-listeners.js";
import { noted, type Tree, type TreeMap } from "../../base/document.js";
import type { EnvoyContext } from "../base/context.js";
import { envoyGrpc } from "../base/http-filter.js";
import { tlsSocket } from "../base/tls-socket.js";
import { durationText, extension, loadAssignment, socketAddress } from "../base/values.js";

/** Timeout of a Redis command, in milliseconds. */
const redisOpTimeoutMs = 5_000;

/** Bytes of a connection that are buffered before they are consumed, as for HTTP listeners. */
const bufferBytesMax = 32_768;

/** Name of a TCP listener's cluster, statistics and listener. No service has a name like it. */
function tcpName({ name }: Pick<TcpListenerPolicy, "name">): string {
  return `tcp_${name}`;
}

/**
 * Returns a listener for a service that speaks TCP or Redis. Its filters limit connections before
 * the terminal filter accepts them. Source: envoy.config.listener.v3.Listener.
 */
export function tcpListener(policy: TcpListenerPolicy, context: EnvoyContext): Tree {
  return {
    name: tcpName(policy),
    address: socketAddress(context.policy.proxies.listener.address, policy.port),
    enable_reuse_port: false,
    per_connection_buffer_limit_bytes: bufferBytesMax,
    filter_chains: [{ filters: [...connectionFilters(policy, context), proxyFilter(policy)] }],
  };
}

/** Returns the filters that limit the connections of a listener, the cheapest first. */
export function connectionFilters(
  policy: TcpListenerPolicy,
  context: EnvoyContext,
): readonly Tree[] {
  const limit = networkFilter("connection_limit", "ConnectionLimit", {
    stat_prefix: tcpName(policy),
    max_connections: policy.connectionsMax,
  });
  return [limit, ...localLimit(policy), ...globalLimit(policy, context)];
}

/** Source: envoy.extensions.filters.network.local_ratelimit.v3.LocalRateLimit. */
function localLimit(policy: TcpListenerPolicy): readonly Tree[] {
  const { connectionRate: rate } = policy;
  if (rate === undefined) return [];
  return [
    networkFilter("local_ratelimit", "LocalRateLimit", {
      stat_prefix: tcpName(policy),
      token_bucket: {
        max_tokens: rate.burst,
        tokens_per_fill: rate.connections,
        fill_interval: durationText(rate.perMs),
      },
    }),
  ];
}

/**
 * Each new connection is one hit. A denied connection is closed. Source:
 * envoy.extensions.filters.network.ratelimit.v3.RateLimit.
 */
function globalLimit(policy: TcpListenerPolicy, context: EnvoyContext): readonly Tree[] {
  const { rateLimit: limit } = policy;
  if (limit === undefined) return [];
  const { rateLimitTimeoutMs, deniesWithoutAnswer } = context.policy.proxies.headgate;
  return [
    networkFilter("ratelimit", "RateLimit", {
      stat_prefix: tcpName(policy),
      domain: limit.domain,
      descriptors: limit.descriptors.map((parts) => ({
        entries: parts.map((part) => ({ key: part.key, value: entryValue(part) })),
      })),
      timeout: durationText(rateLimitTimeoutMs),
      failure_mode_deny: noted(
        deniesWithoutAnswer
          ? "Without an answer, the connection is closed."
          : "Without an answer, the connection passes.",
        deniesWithoutAnswer,
      ),
      rate_limit_service: {
        transport_api_version: "V3",
        grpc_service: envoyGrpc(context.headgateClusters.decisions),
      },
    }),
  ];
}

/** Envoy treats values as format strings, so a `%` in the policy is doubled. */
function entryValue(part: ConnectionPart): string {
  if (part.kind === "remoteAddress") return "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%";
  return part.value.replaceAll("%", "%%");
}

function proxyFilter(policy: TcpListenerPolicy): Tree {
  const cluster = tcpName(policy);
  if (policy.protocol === "redis") {
    return networkFilter("redis_proxy", "RedisProxy", {
      stat_prefix: cluster,
      settings: { op_timeout: durationText(redisOpTimeoutMs) },
      prefix_routes: { catch_all_route: { cluster } },
    });
  }
  return networkFilter("tcp_proxy", "TcpProxy", {
    stat_prefix: cluster,
    cluster,
    idle_timeout: policy.idleMs && durationText(policy.idleMs),
  });
}

/** Returns one item of `filters`, for one of Envoy's own filters. */
function networkFilter(name: string, message: string, fields: TreeMap): Tree {
  const type = `envoy.extensions.filters.network.${name}.v3.${message}`;
  return extension(`envoy.filters.network.${name}`, type, fields);
}

/**
 * Returns the cluster of a TCP listener. A Redis key must always map to the same host, so hosts are
 * chosen by hash. Source: envoy.config.cluster.v3.Cluster.
 */
export function tcpCluster(policy: TcpListenerPolicy, context: EnvoyContext): Tree {
  const { upstream, protocol, connectMs, connectionsMax } = policy;
  const name = tcpName(policy);
  return {
    name,
    type: "STRICT_DNS",
    dns_lookup_family: "V4_PREFERRED",
    connect_timeout: durationText(connectMs),
    lb_policy: protocol === "redis" ? "MAGLEV" : "LEAST_REQUEST",
    circuit_breakers: {
      thresholds: [{ max_connections: connectionsMax, max_pending_requests: connectionsMax }],
    },
    transport_socket: upstream.tls && tlsSocket(upstream.tls, context.policy.proxies),
    load_assignment: loadAssignment(name, socketAddress(upstream.address, upstream.port)),
  };
}
