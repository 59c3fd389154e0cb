/** A part of Envoy's configuration, as JSON. */
export type Json = Readonly<Record<string, unknown>>;

/** What an Envoy of the tests is to do. */
export interface EnvoyOptions {
  /** Ports of the HTTP upstream, and of every Headgate's gRPC server. */
  readonly upstreamPort: number;
  readonly headgatePorts: readonly number[];
  /** The rate limit actions of all routes. Source: envoy.config.route.v3.RateLimit. */
  readonly rateLimits: readonly Json[];
  /** The filter's domain. Default "edge". */
  readonly domain?: string;
  /**
   * How long a request waits for its decision, in milliseconds. Default 1000; Envoy's own is 20.
   */
  readonly timeoutMs?: number;
  /** What happens to a request without a decision. Default "deny", so that no error goes unseen. */
  readonly withoutDecision?: "allow" | "deny";
  /** More fields of the filter. Source: envoy.extensions.filters.http.ratelimit.v3.RateLimit. */
  readonly filter?: Json;
  /** More fields of the upstream's cluster, and of the route to it. */
  readonly upstreamCluster?: Json;
  readonly route?: Json;
  /** Routes that are tried before the one for everything. */
  readonly routesBefore?: readonly Json[];
  /** More fields of the listener, and of its connection manager. */
  readonly listener?: Json;
  readonly connectionManager?: Json;
  /** HTTP filters that see a request before it, and after it. */
  readonly filtersBefore?: readonly Json[];
  /** HTTP filters that see a request before the ext_proc filter does. */
  readonly filtersFirst?: readonly Json[];
  readonly filtersAfter?: readonly Json[];
  /**
   * Fields of an ext_proc filter in front, and all that goes with one. Source:
   * envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor.
   */
  readonly extProc?: Json;
  /** What a line of its access log says, in JSON, and the file that takes it. Default: no log. */
  readonly accessLog?: { readonly path: string; readonly fields: Readonly<Record<string, string>> };
  /** Whether the gRPC health of each Headgate decides where questions go. Default false. */
  readonly isHealthChecked?: boolean;
  /** How Headgate is reached over TLS. Default: plaintext. */
  readonly tls?: EnvoyTls;
  /** A Unix socket of one Headgate, in place of `headgatePorts`. */
  readonly headgateSocket?: string;
  /** More clusters, and more fields of the whole. Source: envoy.config.bootstrap.v3.Bootstrap. */
  readonly moreClusters?: readonly Json[];
  readonly bootstrap?: Json;
}

/** Envoy as a TLS client. PEM texts. */
export interface EnvoyTls {
  /** Whom it trusts. */
  readonly authority: string;
  /** The name that Headgate's certificate must hold. */
  readonly serverName: string;
  /** What it shows; absent: nothing. */
  readonly client?: { readonly certificate: string; readonly key: string };
}

/**
 * The status of a request that had no decision and was denied for that: no other source makes it.
 */
export const noDecisionStatus = 503;

/** Path prefix under which requests reach Headgate's own gRPC services, through the same filter. */
export const grpcRoutePrefix = "/grpc.health.v1.Health";

const filterType = "envoy.extensions.filters.http.ratelimit.v3.RateLimit";

/** The bootstrap: one listener, the rate limit filter, an upstream, and Headgate as a cluster. */
export function envoyConfig(
  options: EnvoyOptions,
  ports: { readonly listenerPort: number; readonly adminPort: number },
): Json {
  return {
    admin: { address: loopback(ports.adminPort) },
    ...(options.extProc === undefined ? {} : { layered_runtime: gracefulStreams }),
    static_resources: {
      listeners: [
        {
          name: "ingress",
          address: loopback(ports.listenerPort),
          ...options.listener,
          filter_chains: [{ filters: [connectionManager(options)] }],
        },
      ],
      clusters: [
        { ...cluster("upstream", [options.upstreamPort]), ...options.upstreamCluster },
        {
          ...headgateCluster(options),
          ...http2Cluster,
          ...(options.tls === undefined ? {} : { transport_socket: tlsSocket(options.tls) }),
          ...(options.isHealthChecked === true ? healthChecks : {}),
          ...(options.extProc === undefined ? {} : openStreams),
        },
        ...(options.moreClusters ?? []),
      ],
    },
    ...options.bootstrap,
  };
}

function connectionManager(options: EnvoyOptions): Json {
  return {
    name: "envoy.filters.network.http_connection_manager",
    typed_config: {
      "@type": typeUrl(
        "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
      ),
      stat_prefix: "ingress",
      ...options.connectionManager,
      ...(options.accessLog === undefined ? {} : { access_log: [fileLog(options.accessLog)] }),
      route_config: {
        name: "routes",
        virtual_hosts: [{ name: "all", domains: ["*"], routes: routesOf(options) }],
      },
      http_filters: [
        ...(options.filtersFirst ?? []),
        ...(options.extProc === undefined ? [] : [extProcFilter(options.extProc)]),
        ...(options.filtersBefore ?? []),
        { name: "envoy.filters.http.ratelimit", typed_config: rateLimitFilter(options) },
        ...(options.filtersAfter ?? []),
        {
          name: "envoy.filters.http.router",
          typed_config: { "@type": typeUrl("envoy.extensions.filters.http.router.v3.Router") },
        },
      ],
    },
  };
}

function fileLog({ path, fields }: NonNullable<EnvoyOptions["accessLog"]>): Json {
  return {
    name: "envoy.access_loggers.file",
    typed_config: {
      "@type": typeUrl("envoy.extensions.access_loggers.file.v3.FileAccessLog"),
      path,
      log_format: { json_format: fields },
    },
  };
}

/** As it should be set up, but for what a test wants otherwise. */
function extProcFilter(fields: Json): Json {
  return httpFilter("ext_proc", "ExternalProcessor", {
    grpc_service: { envoy_grpc: { cluster_name: "headgate" } },
    message_timeout: "1s",
    max_message_timeout: "10s",
    allow_mode_override: true,
    processing_mode: { response_trailer_mode: "SEND" },
    metadata_options: { receiving_namespaces: { untyped: ["headgate"] } },
    ...fields,
  });
}

/** Without it Envoy resets the stream of every exchange. */
const gracefulStreams: Json = {
  layers: [
    {
      name: "static",
      static_layer: { "envoy.reloadable_features.ext_proc_graceful_grpc_close": true },
    },
  ],
};

/** Each request in flight holds a stream: one request of the cluster. */
const openStreams: Json = {
  circuit_breakers: { thresholds: [{ max_requests: 100_000, max_pending_requests: 10_000 }] },
};

function routesOf({ route, routesBefore = [] }: EnvoyOptions): readonly Json[] {
  return [
    { match: { prefix: grpcRoutePrefix }, route: { cluster: "headgate" } },
    ...routesBefore,
    { match: { prefix: "/" }, route: { cluster: "upstream", timeout: "15s", ...route } },
  ];
}

/** The filter carries the actions itself: in a route, costs and refunds would be ignored. */
function rateLimitFilter(options: EnvoyOptions): Json {
  const { domain = "edge", timeoutMs = 1_000, withoutDecision = "deny" } = options;
  return {
    "@type": typeUrl(filterType),
    domain,
    timeout: `${timeoutMs / 1_000}s`,
    failure_mode_deny: withoutDecision === "deny",
    status_on_error: { code: noDecisionStatus },
    enable_x_ratelimit_headers: "DRAFT_VERSION_03",
    enable_retry_after_header: true,
    rate_limit_service: {
      transport_api_version: "V3",
      grpc_service: { envoy_grpc: { cluster_name: "headgate" } },
    },
    rate_limits: options.rateLimits,
    ...options.filter,
  };
}

function headgateCluster({ headgatePorts, headgateSocket }: EnvoyOptions): Json {
  if (headgateSocket === undefined) return cluster("headgate", headgatePorts);
  return clusterOf("headgate", [{ pipe: { path: headgateSocket } }]);
}

/** No ALPN is configured: Envoy asks for what its HTTP/2 settings say. */
function tlsSocket({ authority, serverName, client }: EnvoyTls): Json {
  const inline = (text: string): Json => ({ inline_string: text });
  const shown =
    client === undefined
      ? {}
      : {
          tls_certificates: [
            { certificate_chain: inline(client.certificate), private_key: inline(client.key) },
          ],
        };
  return {
    name: "envoy.transport_sockets.tls",
    typed_config: {
      "@type": typeUrl("envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"),
      sni: serverName,
      common_tls_context: {
        ...shown,
        validation_context: {
          trusted_ca: inline(authority),
          match_typed_subject_alt_names: [{ san_type: "DNS", matcher: { exact: serverName } }],
        },
      },
    },
  };
}

function cluster(name: string, ports: readonly number[]): Json {
  return clusterOf(name, ports.map(loopback));
}

function clusterOf(name: string, addresses: readonly Json[]): Json {
  const endpoints = addresses.map((address) => ({ endpoint: { address } }));
  return {
    name,
    type: "STATIC",
    connect_timeout: "1s",
    load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: endpoints }] },
  };
}

const http2Cluster: Json = {
  typed_extension_protocol_options: {
    "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
      "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
      explicit_http_config: { http2_protocol_options: {} },
    },
  },
};

const healthChecks: Json = {
  health_checks: [
    {
      // A Headgate that stops says so at once; a machine that is busy answers late.
      timeout: "5s",
      interval: "0.1s",
      no_traffic_interval: "0.1s",
      unhealthy_threshold: 1,
      healthy_threshold: 1,
      grpc_health_check: { service_name: "ratelimit" },
    },
  ],
  // By default Envoy's workers hear of a second change only when a second has passed since the
  // last.
  common_lb_config: { update_merge_window: "0s" },
};

function loopback(port: number): Json {
  return { socket_address: { address: "127.0.0.1", port_value: port } };
}

function typeUrl(name: string): string {
  return `type.googleapis.com/${name}`;
}

/** Another HTTP filter. Example name: `set_metadata`, of `envoy.filters.http.set_metadata`. */
export function httpFilter(name: string, message: string, fields: Json): Json {
  const type = `envoy.extensions.filters.http.${name}.v3.${message}`;
  return {
    name: `envoy.filters.http.${name}`,
    typed_config: { "@type": typeUrl(type), ...fields },
  };
}

/** An action: a descriptor entry whose value is a request header; no header, no descriptor. */
export function fromHeader(headerName: string, key: string): Json {
  const action = { header_name: headerName, descriptor_key: key, skip_if_absent: false };
  return { request_headers: action };
}

/** An action: a descriptor entry that never changes. */
export function constant(key: string, value: string): Json {
  return { generic_key: { descriptor_key: key, descriptor_value: value } };
}
