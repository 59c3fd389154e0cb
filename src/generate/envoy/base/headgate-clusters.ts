import { noted, type Tree, type TreeMap } from "../../base/document.js";
import type { EnvoyContext } from "./context.js";
import { tlsSocket } from "./tls-socket.js";
import { httpProtocolOptions, loadAssignment, socketAddress } from "./values.js";

/**
 * Returns the clusters that lead to Headgate: decisions (rate limits, admission), control (runtime
 * layers, statistics, load reports). A proxy that refers to one of them only includes that one.
 */
export function headgateClusters(context: EnvoyContext): readonly Tree[] {
  const { proxies } = context.policy;
  const { headgate } = proxies;
  const { tls } = headgate;
  const socket =
    tls && tlsSocket({ kind: "files", ...tls, subjectAltNames: [tls.serverName] }, proxies);
  const { decisions, control } = context.headgateClusters;
  const common = (name: string, port: number): TreeMap => ({
    load_assignment: loadAssignment(name, socketAddress(headgate.address, port)),
  });
  return [
    {
      ...begin(decisions),
      lb_policy: noted(balancingNote, balancing),
      common_lb_config: noted(
        "Skips a failing replica at once, even within a second of another change.",
        { update_merge_window: "0s" },
      ),
      circuit_breakers: noted(
        "Every request in flight may hold a stream. Envoy's default of 1,024 would " +
          "refuse requests that the services can handle.",
        { thresholds: [{ max_requests: streamsMax, max_pending_requests: streamsMax }] },
      ),
      health_checks: [
        noted("Drains a replica before it stops.", {
          timeout: "0.5s",
          interval: "1s",
          no_traffic_interval: "1s",
          unhealthy_threshold: 2,
          healthy_threshold: 1,
          grpc_health_check: { service_name: "ratelimit" },
        }),
      ],
      outlier_detection: noted(replicaEjection.note, {
        split_external_local_origin_errors: true,
        consecutive_local_origin_failure: replicaEjection.failureCount,
        enforcing_consecutive_local_origin_failure: 100,
        enforcing_consecutive_5xx: 0,
        enforcing_success_rate: 0,
        enforcing_local_origin_success_rate: 0,
        interval: replicaEjection.interval,
        base_ejection_time: replicaEjection.baseTime,
        max_ejection_percent: replicaEjection.percentMax,
      }),
      transport_socket: socket,
      typed_extension_protocol_options: http2("1s"),
      ...common(decisions, headgate.port),
    },
    {
      ...begin(control),
      transport_socket: socket,
      typed_extension_protocol_options: http2("2s"),
      ...common(control, headgate.controlPort),
    },
  ];
}

/** Load balancing policy for Headgate's replicas. */
export const balancing = "LEAST_REQUEST";

/**
 * Each request may call twice, for its limits and for its admission. Round robin would send all of
 * the former to one replica and all of the latter to another.
 */
export const balancingNote =
  "The less busy of two random replicas. With round robin, requests that make two " +
  "calls would send all calls of one kind to the same replica.";

/**
 * Outlier detection that ejects a dead replica: three consecutive calls that it did not accept, or
 * not answer in time. Errors in its answers are decisions of a limit (`on_store_failure: error`),
 * and no reason to call another replica. A successful health check brings a replica back at once.
 */
export const replicaEjection = {
  note: "Ejects a dead replica at once. Calls to it fail fast, so it looks the least busy.",
  failureCount: 3,
  interval: "1s",
  baseTime: "5s",
  /** Half of the replicas stay in rotation, however slow all of them are. */
  percentMax: 50,
} as const;

/** Maximum number of concurrent streams to Headgate. */
export const streamsMax = 100_000;

function begin(name: string): TreeMap {
  return {
    name,
    type: "STRICT_DNS",
    dns_lookup_family: "V4_PREFERRED",
    connect_timeout: "0.25s",
  };
}

/** gRPC needs HTTP/2, and clusters use HTTP/1.1 by default. */
function http2(timeout: string): TreeMap {
  return httpProtocolOptions({
    explicit_http_config: {
      http2_protocol_options: {
        connection_keepalive: noted(
          "Detects a Headgate that disappears without closing its connections.",
          {
            interval: "5s",
            timeout,
          },
        ),
      },
    },
  });
}
