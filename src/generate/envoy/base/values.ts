import type { TreeMap } from "../../base/document.js";

/** Formats a duration as Envoy's configuration expects it. Example: 250 becomes `0.25s`. */
export function durationText(ms: number): string {
  return `${ms / 1_000}s`;
}

/** Wraps a message in an `Any`, by its full name. */
export function typed(message: string, fields: TreeMap = {}): TreeMap {
  return { "@type": `type.googleapis.com/${message}`, ...fields };
}

/** Returns an Envoy extension: its name, and its configuration by the message's full name. */
export function extension(name: string, message: string, fields: TreeMap = {}): TreeMap {
  return { name, typed_config: typed(message, fields) };
}

/** Returns a socket address. Default protocol: TCP. */
export function socketAddress(address: string, port: number, protocol?: "UDP"): TreeMap {
  return { socket_address: { protocol, address, port_value: port } };
}

/** Returns the endpoints of a cluster with a single address. */
export function loadAssignment(name: string, address: TreeMap): TreeMap {
  return {
    cluster_name: name,
    endpoints: [{ lb_endpoints: [{ endpoint: { address } }] }],
  };
}

/** Returns the settings that select and configure a cluster's version of HTTP. */
export function httpProtocolOptions(fields: TreeMap): TreeMap {
  const name = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
  return { [name]: typed(name, fields) };
}

/** Disables an HTTP filter for one route, whichever filter it is. */
export function filterOff(): TreeMap {
  return typed("envoy.config.route.v3.FilterConfig", { disabled: true });
}
