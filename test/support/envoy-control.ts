import type { EnvoyOptions, Json } from "./envoy-config.js";

/** How an Envoy of the tests is joined to a control port. */
export interface EnvoyControl {
  readonly port: number;
  readonly nodeId: string;
  /** Which service its runtime layer comes over. Default "rtds". */
  readonly over?: "rtds" | "ads";
  /** Whether it reports load. Default true. */
  readonly reportsLoad?: boolean;
  /** Whether it pushes statistics. Default true. */
  readonly pushesMetrics?: boolean;
  /** Whether names of statistics are taken apart into labels. Default false. */
  readonly emitsLabels?: boolean;
  /** How it pushes times. Default as generated: as quantiles. */
  readonly times?: "SUMMARY" | "HISTOGRAM" | "SUMMARY_AND_HISTOGRAM";
  /** The port that statistics are pushed to. Default that of the control port. */
  readonly metricsPort?: number;
}

/** Envoy's options that make it ask a control port for its layer and tell it what it does. */
export function joinedTo(control: EnvoyControl): Pick<EnvoyOptions, "bootstrap" | "moreClusters"> {
  const { port, nodeId, over = "rtds", reportsLoad = true, pushesMetrics = true } = control;
  const clusters = { control: port, statistics: control.metricsPort ?? port };
  return {
    moreClusters: Object.entries(clusters).map(([name, at]) => controlCluster(name, at)),
    bootstrap: {
      node: { id: nodeId, cluster: "edge" },
      stats_flush_interval: "0.5s",
      layered_runtime: {
        layers: [
          { name: "static", static_layer: {} },
          {
            name: "headgate",
            rtds_layer: {
              name: "headgate",
              rtds_config: {
                resource_api_version: "V3",
                ...(over === "ads" ? { ads: {} } : { api_config_source: apiSource }),
              },
            },
          },
        ],
      },
      ...(over === "ads" ? { dynamic_resources: { ads_config: apiSource } } : {}),
      ...(reportsLoad ? { cluster_manager: { load_stats_config: grpcSource } } : {}),
      ...(pushesMetrics ? { stats_sinks: [metricsSink(control)] } : {}),
    },
  };
}

const grpcSource: Json = {
  api_type: "GRPC",
  transport_api_version: "V3",
  grpc_services: [
    {
      envoy_grpc: {
        cluster_name: "control",
        retry_policy: { retry_back_off: { base_interval: "0.1s", max_interval: "0.5s" } },
      },
    },
  ],
};

const apiSource: Json = { ...grpcSource, set_node_on_first_message_only: true };

function metricsSink({ emitsLabels = false, times = "SUMMARY" }: EnvoyControl): Json {
  return {
    name: "envoy.stat_sinks.metrics_service",
    typed_config: {
      "@type": "type.googleapis.com/envoy.config.metrics.v3.MetricsServiceConfig",
      transport_api_version: "V3",
      grpc_service: { envoy_grpc: { cluster_name: "statistics" } },
      report_counters_as_deltas: true,
      emit_tags_as_labels: emitsLabels,
      histogram_emit_mode: times,
    },
  };
}

function controlCluster(name: string, port: number): Json {
  const address = { socket_address: { address: "127.0.0.1", port_value: port } };
  return {
    name,
    type: "STATIC",
    connect_timeout: "1s",
    typed_extension_protocol_options: {
      "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
        "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
        explicit_http_config: { http2_protocol_options: {} },
      },
    },
    load_assignment: {
      cluster_name: name,
      endpoints: [{ lb_endpoints: [{ endpoint: { address } }] }],
    },
  };
}
