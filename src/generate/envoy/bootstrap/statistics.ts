import { noted, type Tree } from "../../base/document.js";
import type { EnvoyContext } from "../base/context.js";
import { extension, loadAssignment, socketAddress } from "../base/values.js";

const clusterName = "envoy_admin";

/** Maximum number of open connections of scrapers. */
const connectionsMax = 100;

/**
 * Returns a listener that only answers `GET /stats/prometheus`, and nothing else of Envoy's admin
 * port, because access to that port gives control over the proxy.
 */
export function statisticsListener({ policy }: EnvoyContext): Tree {
  const { address, statisticsPort } = policy.proxies.listener;
  const match = {
    path: "/stats/prometheus",
    headers: [{ name: ":method", string_match: { exact: "GET" } }],
  };
  return {
    name: "statistics",
    address: noted(
      "For Prometheus: serves the metrics and nothing else of the admin port.",
      socketAddress(address, statisticsPort),
    ),
    filter_chains: [
      {
        filters: [
          extension(
            "envoy.filters.network.connection_limit",
            "envoy.extensions.filters.network.connection_limit.v3.ConnectionLimit",
            { stat_prefix: "statistics", max_connections: connectionsMax },
          ),
          extension(
            "envoy.filters.network.http_connection_manager",
            "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
            {
              stat_prefix: "statistics",
              request_headers_timeout: "10s",
              route_config: {
                name: "statistics",
                virtual_hosts: [
                  {
                    name: "statistics",
                    domains: ["*"],
                    routes: [{ match, route: { cluster: clusterName } }],
                  },
                ],
              },
              http_filters: [
                extension(
                  "envoy.filters.http.router",
                  "envoy.extensions.filters.http.router.v3.Router",
                  {},
                ),
              ],
            },
          ),
        ],
      },
    ],
  };
}

/** Returns the cluster of the admin port, which serves Envoy's statistics. */
export function adminCluster({ policy }: EnvoyContext): Tree {
  const { adminPort } = policy.proxies.listener;
  return {
    name: clusterName,
    type: "STATIC",
    connect_timeout: "0.25s",
    load_assignment: loadAssignment(clusterName, socketAddress("127.0.0.1", adminPort)),
  };
}
