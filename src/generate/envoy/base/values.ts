import type { TreeMap } from "../../base/document.js";

/** A duration as Envoy's configuration has it. Example: 250 becomes `0.25s`. */
export function durationText(ms: number): string {
  return `${ms / 1_000}s`;
}

/** A message inside an `Any`, by its full name. */
export function typed(message: string, fields: TreeMap = {}): TreeMap {
  return { "@type": `type.googleapis.com/${message}`, ...fields };
}

/** An extension of Envoy: its name, and its configuration by the message's full name. */
export function extension(name: string, message: string, fields: TreeMap = {}): TreeMap {
  return { name, typed_config: typed(message, fields) };
}

/** An address; TCP unless it is said otherwise. */
export function socketAddress(address: string, port: number, protocol?: "UDP"): TreeMap {
  return { socket_address: { protocol, address, port_value: port } };
}

/** The endpoints of a cluster that has one address. */
export function loadAssignment(name: string, address: TreeMap): TreeMap {
  return {
    cluster_name: name,
    endpoints: [{ lb_endpoints: [{ endpoint: { address } }] }],
  };
}

/** The settings that say which HTTP a cluster speaks, and how. */
export function httpProtocolOptions(fields: TreeMap): TreeMap {
  const name = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
  return { [name]: typed(name, fields) };
}

/** Takes an HTTP filter out of the way of one route, whatever the filter. */
export function filterOff(): TreeMap {
  return typed("envoy.config.route.v3.FilterConfig", { disabled: true });
}
