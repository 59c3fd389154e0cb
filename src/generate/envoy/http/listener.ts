import type { EscapedSlashesAction, ListenerPolicy } from "../../../policy/proxies/proxies.js";
import { noted, type Tree, type TreeMap } from "../../base/document.js";
import type { EnvoyContext } from "../base/context.js";
import { listenerTlsSocket, quicSocket } from "../base/tls-socket.js";
import { durationText, extension, socketAddress } from "../base/values.js";
import { localReplies } from "./local-replies.js";
import { listenerBodyBytes } from "./usage.js";

interface ListenerParts {
  /** Also the prefix of its statistics. */
  readonly name: "ingress" | "egress";
  readonly port: number;
  readonly httpFilters: readonly Tree[];
  readonly virtualHosts: readonly Tree[];
}

/**
 * Returns a listener with its limits: connections, streams of a connection, and the time in which a
 * request must arrive. Source: envoy.config.listener.v3.Listener.
 */
export function listener(parts: ListenerParts, context: EnvoyContext): Tree {
  const { name, port } = parts;
  const isEgress = name === "egress";
  const { proxies } = context.policy;
  const { tls } = proxies.listener;
  return {
    name,
    address: isEgress
      ? noted("For the service next to this proxy only.", socketAddress("127.0.0.1", port))
      : socketAddress(proxies.listener.address, port),
    enable_reuse_port: noted(
      "With the default, a second proxy would silently share the port and take " +
        "half of the requests.",
      false,
    ),
    per_connection_buffer_limit_bytes: bufferBytes(context),
    filter_chains: [
      {
        filters: [connectionLimit(name, context), managerOf(parts, context)],
        transport_socket:
          isEgress || tls === undefined ? undefined : listenerTlsSocket(tls, proxies),
      },
    ],
  };
}

/**
 * Returns the HTTP/3 listener next to the TCP listener of an edge proxy. Undefined if the policy
 * does not set it. Source: envoy.config.listener.v3.UdpListenerConfig.
 */
export function http3Listener(parts: ListenerParts, context: EnvoyContext): Tree | undefined {
  const { address, tls, http3 } = context.policy.proxies.listener;
  if (http3 === undefined || tls === undefined || context.role !== "edge") return undefined;
  return {
    name: `${parts.name}_http3`,
    address: socketAddress(address, parts.port, "UDP"),
    udp_listener_config: {
      quic_options: {},
      downstream_socket_config: { prefer_gro: true },
    },
    per_connection_buffer_limit_bytes: bufferBytes(context),
    filter_chains: [
      {
        filters: [connectionLimit(parts.name, context), managerOf(parts, context, "HTTP3")],
        transport_socket: quicSocket(tls, context),
      },
    ],
  };
}

function managerOf(parts: ListenerParts, context: EnvoyContext, codec?: "HTTP3"): Tree {
  return extension(
    "envoy.filters.network.http_connection_manager",
    "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
    connectionManager(parts, context, codec),
  );
}

/** Bytes of a connection that are buffered before they are consumed. */
function bufferBytes(context: EnvoyContext): number {
  return Math.max(32_768, listenerBodyBytes(context));
}

/** Connections above the limit are closed at once. */
function connectionLimit(name: ListenerParts["name"], { policy }: EnvoyContext): Tree {
  return extension(
    "envoy.filters.network.connection_limit",
    "envoy.extensions.filters.network.connection_limit.v3.ConnectionLimit",
    { stat_prefix: name, max_connections: policy.proxies.listener.connectionsMax },
  );
}

function connectionManager(
  parts: ListenerParts,
  context: EnvoyContext,
  codec: "HTTP3" | undefined,
): TreeMap {
  const { name, virtualHosts, httpFilters } = parts;
  const isEdge = context.role === "edge";
  const { concurrentStreamsMax, escapedSlashes } = context.policy.proxies.listener;
  const bounds = name === "egress" ? {} : headerBounds(context.policy.proxies.listener);
  return {
    stat_prefix: name,
    codec_type: codec,
    ...callerAddress(parts, context),
    normalize_path: noted("Routing and the service see the same path.", true),
    merge_slashes: isEdge ? true : undefined,
    path_with_escaped_slashes_action: isEdge
      ? escapedSlashesWords[escapedSlashes ?? "unescapeAndRedirect"]
      : undefined,
    request_headers_timeout: "10s",
    ...bounds,
    ...(codec === undefined
      ? { http2_protocol_options: { max_concurrent_streams: concurrentStreamsMax, ...windows } }
      : {
          http3_protocol_options: {
            quic_protocol_options: { max_concurrent_streams: concurrentStreamsMax, ...windows },
          },
        }),
    access_log: accessLog(),
    local_reply_config: noted(
      "Every response that sheds load carries retry-after.",
      localReplies(context),
    ),
    route_config: {
      name,
      ignore_port_in_host_matching: true,
      response_headers_to_add: name === "ingress" ? altSvc(context) : undefined,
      virtual_hosts: virtualHosts,
    },
    http_filters: httpFilters,
  };
}

/** Bytes in transit before the reader requests more. */
const windows = {
  initial_stream_window_size: 65_536,
  initial_connection_window_size: 1_048_576,
} as const;

/** How long callers remember where HTTP/3 is available, in seconds: a day. */
const altSvcSeconds = 86_400;

/** Advertises HTTP/3: callers do not try it otherwise. Source: RFC 7838, RFC 9114 section 3.1.1. */
function altSvc({ role, policy }: EnvoyContext): readonly Tree[] | undefined {
  const { http3, port } = policy.proxies.listener;
  if (http3 === undefined || role !== "edge") return undefined;
  const value = `h3=":${http3.advertisedPort ?? port}"; ma=${altSvcSeconds}`;
  return [{ header: { key: "alt-svc", value }, append_action: "OVERWRITE_IF_EXISTS_OR_ADD" }];
}

/** Limits of a caller's headers and connection that differ from Envoy's defaults. */
export function headerBounds({
  requestHeadersKibMax,
  headersCountMax,
  maxConnectionMs,
}: ListenerPolicy): TreeMap {
  const isCommon = headersCountMax !== undefined || maxConnectionMs !== undefined;
  return {
    max_request_headers_kb: requestHeadersKibMax,
    common_http_protocol_options: isCommon
      ? {
          max_connection_duration: maxConnectionMs && durationText(maxConnectionMs),
          max_headers_count: headersCountMax,
        }
      : undefined,
  };
}

/** Envoy's enum values. Source: HttpConnectionManager.PathWithEscapedSlashesAction. */
export const escapedSlashesWords: Readonly<Record<EscapedSlashesAction, string>> = {
  keepUnchanged: "KEEP_UNCHANGED",
  rejectRequest: "REJECT_REQUEST",
  unescapeAndRedirect: "UNESCAPE_AND_REDIRECT",
  unescapeAndForward: "UNESCAPE_AND_FORWARD",
};

/** Sets whose address is the caller's. The service next to an egress listener is no caller. */
function callerAddress({ name }: ListenerParts, { policy }: EnvoyContext): TreeMap {
  if (name === "egress") return {};
  const { trustedHops } = policy.proxies.listener;
  const why =
    trustedHops === 0
      ? "The caller's address is the address of the connection."
      : `The caller's address comes from ${trustedHops} of our own proxies in front of this one.`;
  return {
    use_remote_address: noted(why, true),
    xff_num_trusted_hops: trustedHops === 0 ? undefined : trustedHops,
  };
}

/**
 * Returns the access log of a listener: one JSON object per line on standard output, with the names
 * that `headgate replay` reads, and with what refused a request: the rule of a rate limit, the rule
 * or cause of admission, and Envoy's own flags. It contains no headers of callers, because limits
 * may be keyed by credentials.
 *
 * Source: envoy.extensions.access_loggers.stream.v3.StdoutAccessLog; Envoy, "Access logging".
 */
function accessLog(): readonly Tree[] {
  const format = {
    start_time: "%START_TIME%",
    method: "%REQ(:METHOD)%",
    path: "%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%",
    authority: "%REQ(:AUTHORITY)%",
    protocol: "%PROTOCOL%",
    response_code: "%RESPONSE_CODE%",
    response_flags: "%RESPONSE_FLAGS%",
    response_code_details: "%RESPONSE_CODE_DETAILS%",
    rate_limit_rule: "%DYNAMIC_METADATA(envoy.filters.http.ratelimit:rule)%",
    admission_rule: "%DYNAMIC_METADATA(headgate:rule)%",
    admission_cause: "%DYNAMIC_METADATA(headgate:cause)%",
    duration: "%DURATION%",
    bytes_received: "%BYTES_RECEIVED%",
    bytes_sent: "%BYTES_SENT%",
    upstream_cluster: "%UPSTREAM_CLUSTER%",
    upstream_host: "%UPSTREAM_HOST%",
    downstream_remote_address: "%DOWNSTREAM_REMOTE_ADDRESS%",
    x_forwarded_for: "%REQ(X-FORWARDED-FOR)%",
    x_request_id: "%REQ(X-REQUEST-ID)%",
  };
  const stdout = extension(
    "envoy.access_loggers.stdout",
    "envoy.extensions.access_loggers.stream.v3.StdoutAccessLog",
    { log_format: { json_format: format } },
  );
  return [noted("`headgate replay` reads this log. It also names what refused a request.", stdout)];
}
