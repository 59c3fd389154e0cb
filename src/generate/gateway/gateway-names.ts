import type { GatewayListener } from "../../policy/proxies/proxies.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import { type ObjectPlace, objectName } from "../base/custom-object.js";
import type { EnvoyContext } from "../envoy/base/context.js";

/** Group of the Gateway API's own kinds. */
export const gatewayGroup = "gateway.networking.k8s.io";

/** Version of Envoy Gateway's kinds. */
export const envoyGatewayVersion = "gateway.envoyproxy.io/v1alpha1";

/** Where a policy names none. */
const defaultListeners: readonly GatewayListener[] = [
  { name: "http", port: 80, hostname: undefined, protocol: undefined },
];

/** The Gateway whose proxies are patched: called as the policy where it does not say otherwise. */
export function gatewayName({ policy, options }: EnvoyContext): ObjectPlace {
  const { name, namespace } = policy.proxies.gateway;
  return {
    name: objectName(name ?? policy.name),
    namespace: namespace ?? options.namespace,
  };
}

/** The listeners of the Gateway that are patched. */
export function gatewayListeners({ policy }: EnvoyContext): readonly GatewayListener[] {
  return policy.proxies.gateway.listeners ?? defaultListeners;
}

/** A service's HTTPRoute is called as the service. */
export function routePlace(service: ServicePolicy, { options }: EnvoyContext): ObjectPlace {
  return { name: objectName(service.name), namespace: service.namespace ?? options.namespace };
}

/**
 * What Envoy Gateway calls the listeners of Envoy: one for each port, called as the first of the
 * Gateway's listeners on it, and another for HTTP/3 where that speaks HTTPS.
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

/** A virtual host of Envoy, and the routes of which it is a part. */
interface XdsVirtualHost {
  readonly routes: string;
  readonly name: string;
}

/** What it calls the virtual hosts of a host: one for each listener that serves it. */
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
 * What it calls the cluster of an HTTPRoute's first rule; others have their number. A backend has a
 * cluster of its own where zones count.
 */
export function ruleCluster(
  { loadBalancing }: Pick<ServicePolicy, "loadBalancing">,
  { name, namespace }: { readonly name: string; readonly namespace: string },
): string {
  const rule = `httproute/${namespace}/${name}/rule/0`;
  return loadBalancing.zoneAware === undefined ? rule : `${rule}/backend/0`;
}

/** What it calls the ext_proc of an EnvoyExtensionPolicy: of its cluster, and of its filter. */
export function xdsExtProc(
  { name, namespace }: ObjectPlace,
  index: number,
): { readonly cluster: string; readonly filter: string } {
  const cluster = `envoyextensionpolicy/${namespace}/${name}/extproc/${index}`;
  return { cluster, filter: `envoy.filters.http.ext_proc/${cluster}` };
}

/** Largest number of digits of a unit. Source: Gateway API, Duration. */
const digitsMax = 5;

/** Milliseconds as the Gateway API has durations, such as `1m30s` or `250ms`. */
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
