import type { ServicePolicy } from "../../policy/service-policy.js";
import { type ObjectPlace, objectName } from "../custom-object.js";
import type { EnvoyContext } from "../envoy/context.js";

/** Group of the Gateway API's own kinds. */
export const gatewayGroup = "gateway.networking.k8s.io";

/** Version of Envoy Gateway's kinds. */
export const envoyGatewayVersion = "gateway.envoyproxy.io/v1alpha1";

/** The listener of the Gateway whose proxies are patched. */
export const listenerName = "http";

/** The Gateway is called as the policy. */
export function gatewayPlace({ policy, options }: EnvoyContext): ObjectPlace {
  return { name: objectName(policy.name), namespace: options.namespace };
}

/** A service's HTTPRoute is called as the service. */
export function routePlace(service: ServicePolicy, { options }: EnvoyContext): ObjectPlace {
  return { name: objectName(service.name), namespace: service.namespace ?? options.namespace };
}

/** What Envoy Gateway calls the listener, and its routes. */
export function xdsListener(context: EnvoyContext): string {
  const { name, namespace } = gatewayPlace(context);
  return `${namespace}/${name}/${listenerName}`;
}

/** What it calls the virtual host of a host. */
export function xdsVirtualHost(host: string, context: EnvoyContext): string {
  return `${xdsListener(context)}/${host.replaceAll(".", "_")}`;
}

/** What it calls the cluster of an HTTPRoute's first rule. */
export function xdsCluster(service: ServicePolicy, context: EnvoyContext): string {
  const { name, namespace } = routePlace(service, context);
  return `httproute/${namespace}/${name}/rule/0`;
}

/** What it calls the ext_proc of an EnvoyExtensionPolicy: of its cluster, and of its filter. */
export function xdsExtProc(
  service: ServicePolicy,
  context: EnvoyContext,
): { readonly cluster: string; readonly filter: string } {
  const { name, namespace } = routePlace(service, context);
  const cluster = `envoyextensionpolicy/${namespace}/${name}/extproc/0`;
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
