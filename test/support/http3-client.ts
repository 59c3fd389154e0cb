/** What an Envoy asks in HTTP/3 that stands between a test and the proxy under test. */
export interface Http3ClientWish {
  /** Where HTTP/3 is spoken, on loopback. */
  readonly port: number;
  /** Where it takes requests of HTTP/1.1. */
  readonly clientPort: number;
  readonly adminPort: number;
  readonly serverName: string;
  readonly caFile: string;
  /** Its own certificate and key, where it shows one. */
  readonly certFile?: string;
  readonly keyFile?: string;
}

const types = "type.googleapis.com/envoy.extensions";

/**
 * The bootstrap of an Envoy that turns requests of HTTP/1.1 into ones of HTTP/3: the only client of
 * it that is there. Source: envoy.extensions.transport_sockets.quic.v3.QuicUpstreamTransport.
 */
export function http3Client(wish: Http3ClientWish): object {
  const address = (port: number) => ({
    socket_address: { address: "127.0.0.1", port_value: port },
  });
  const manager = {
    "@type": `${types}.filters.network.http_connection_manager.v3.HttpConnectionManager`,
    stat_prefix: "client",
    route_config: {
      virtual_hosts: [
        {
          name: "all",
          domains: ["*"],
          routes: [{ match: { prefix: "/" }, route: { cluster: "http3" } }],
        },
      ],
    },
    http_filters: [
      {
        name: "envoy.filters.http.router",
        typed_config: { "@type": `${types}.filters.http.router.v3.Router` },
      },
    ],
  };
  const name = "envoy.filters.network.http_connection_manager";
  return {
    node: { id: "client", cluster: "client" },
    admin: { address: address(wish.adminPort) },
    static_resources: {
      listeners: [
        {
          name: "client",
          address: address(wish.clientPort),
          filter_chains: [{ filters: [{ name, typed_config: manager }] }],
        },
      ],
      clusters: [http3Cluster(wish, address(wish.port))],
    },
  };
}

function http3Cluster({ serverName, caFile, certFile, keyFile }: Http3ClientWish, address: object) {
  const own = [{ certificate_chain: { filename: certFile }, private_key: { filename: keyFile } }];
  const options = `${types.slice("type.googleapis.com/".length)}.upstreams.http.v3`;
  return {
    name: "http3",
    type: "STATIC",
    connect_timeout: "5s",
    transport_socket: {
      name: "envoy.transport_sockets.quic",
      typed_config: {
        "@type": `${types}.transport_sockets.quic.v3.QuicUpstreamTransport`,
        upstream_tls_context: {
          sni: serverName,
          common_tls_context: {
            validation_context: {
              trusted_ca: { filename: caFile },
              match_typed_subject_alt_names: [{ san_type: "DNS", matcher: { exact: serverName } }],
            },
            ...(certFile === undefined ? {} : { tls_certificates: own }),
          },
        },
      },
    },
    typed_extension_protocol_options: {
      [`${options}.HttpProtocolOptions`]: {
        "@type": `type.googleapis.com/${options}.HttpProtocolOptions`,
        explicit_http_config: { http3_protocol_options: {} },
      },
    },
    load_assignment: {
      cluster_name: "http3",
      endpoints: [{ lb_endpoints: [{ endpoint: { address } }] }],
    },
  };
}
