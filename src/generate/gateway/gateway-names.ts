import type { GatewayListener } from "../../policy/proxies/proxies.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import { type ObjectPlace, objectName } from "../base/custom-object.js";
import type { EnvoyContext } from "../envoy/base/context.js";

/** API group of the Gateway API's own kinds. */
export const gatewayGroup = "gateway.networking.k8s.io";

/** API version of Envoy Gateway's kinds. */
export const envoyGatewayVersion = "gateway.envoyproxy.io/v1alpha1";

/** Listeners if the policy names none. */
const defaultListeners: readonly GatewayListener[] = [
  { name: "http", port: 80, hostname: undefined, protocol: undefined },
];

/** Returns the Gateway whose proxies are patched. By default it has the policy's name. */
export function gatewayName({ policy, options }: EnvoyContext): ObjectPlace {
  const { name, namespace } = policy.proxies.gateway;
  return {
    name: objectName(name ?? policy.name),
    namespace: namespace ?? options.namespace,
  };
}

/** Returns the Gateway's listeners that are patched. */
export function gatewayListeners({ policy }: EnvoyContext): readonly GatewayListener[] {
  return policy.proxies.gateway.listeners ?? defaultListeners;
}

/** Returns the place of a service's HTTPRoute, which has the service's name. */
export function routePlace(service: ServicePolicy, { options }: EnvoyContext): ObjectPlace {
  return { name: objectName(service.name), namespace: service.namespace ?? options.namespace };
}

/**
 * Returns the names that Envoy Gateway gives Envoy's listeners: one for each port, after the
 * Gateway's first listener on it, and another for HTTP/3 if that listener uses HTTPS.
 */
export function xdsListeners(context: EnvoyContext): readonly string[] {
  const all = gatewayListeners(context);
  const first = all.filter(({ port }, index) => {
    return all.findIndex((other) => other.port === port) === index;
  });
  const { http3 } = context.policy.proxies.listener;
  return first.flatMap((listener) => {
    const name = xdsName(listener, context);
    return http3 !== undefined && listener.protocol === "HTTPS" ? [name, `${name}-quic`] : [name];
  });
}

/** A virtual host of Envoy, and the route configuration that contains it. */
interface XdsVirtualHost {
  readonly routes: string;
  readonly name: string;
}

/** Returns Envoy Gateway's names for a host's virtual hosts: one per listener that serves it. */
export function xdsVirtualHosts(host: string, context: EnvoyContext): readonly XdsVirtualHost[] {
  const serving = gatewayListeners(context).filter(({ hostname }) => serves(hostname, host));
  return serving.map((listener) => {
    const routes = xdsName(listener, context);
    return { routes, name: `${routes}/${host.replaceAll(".", "_")}` };
  });
}

/** Source: Gateway API, Listener, `hostname`. */
function serves(hostname: string | undefined, host: string): boolean {
  if (hostname === undefined || hostname === host) return true;
  return hostname.startsWith("*.") && host.endsWith(hostname.slice(1));
}

function xdsName(listener: GatewayListener, context: EnvoyContext): string {
  const { name, namespace } = gatewayName(context);
  return `${namespace}/${name}/${listener.name}`;
}

/**
 * Returns Envoy Gateway's name for the cluster of an HTTPRoute's first rule. Other rules have their
 * number. With zone-aware load balancing, a backend has its own cluster.
 */
export function ruleCluster(
  { loadBalancing }: Pick<ServicePolicy, "loadBalancing">,
  { name, namespace }: { readonly name: string; readonly namespace: string },
): string {
  const rule = `httproute/${namespace}/${name}/rule/0`;
  return loadBalancing.zoneAware === undefined ? rule : `${rule}/backend/0`;
}

/** Returns Envoy Gateway's names for an EnvoyExtensionPolicy's ext_proc: cluster and filter. */
export function xdsExtProc(
  { name, namespace }: ObjectPlace,
  index: number,
): { readonly cluster: string; readonly filter: string } {
  const cluster = `envoyextensionpolicy/${namespace}/${name}/extproc/${index}`;
  return { cluster, filter: `envoy.filters.http.ext_proc/${cluster}` };
}

/** Maximum number of digits of a unit. Source: Gateway API, Duration. */
const digitsMax = 5;

/** Formats milliseconds as a Gateway API duration, such as `1m30s` or `250ms`. */
export function gatewayDuration(ms: number): string {
  if (ms === 0) return "0s";
  const wholeSeconds = Math.floor(ms / 1_000);
  const hours = String(wholeSeconds).length > digitsMax ? Math.floor(wholeSeconds / 3_600) : 0;
  const seconds = wholeSeconds - 3_600 * hours;
  const rest = Math.round(ms % 1_000);
  const parts: readonly (readonly [number, string])[] = [
    [hours, "h"],
    [seconds, "s"],
    [rest, "ms"],
  ];
  return parts
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count}${unit}`)
    .join("");
}
