import { addressAttribute, type RequestFacts, routeAttribute } from "../cel/request-facts.js";
import type { AskablePart } from "./descriptor-parts.js";
import type { KeyedPermits } from "./service-admission.js";

/** Keys that are determined by headers and attributes alone. */
export type RequestKey = Exclude<KeyedPermits["per"], { readonly kind: "model" }>;

/**
 * Returns the caller of a request, or the route that it used. Empty if the request does not contain
 * it: all such requests share one key.
 */
export function requestKey(by: RequestKey, { headers, attributes }: RequestFacts): string {
  switch (by.kind) {
    case "header":
      return headers.get(by.header) ?? "";
    case "remoteAddress":
      return withoutPort(textOf(attributes.get(addressAttribute)));
    case "route":
      return textOf(attributes.get(routeAttribute));
  }
}

/**
 * Returns what Envoy writes for a part of a descriptor; undefined if Envoy omits the descriptor. A
 * header that is present and empty makes an entry with an empty value.
 *
 * Source: envoy.config.route.v3.RateLimit.Action, as Envoy 1.40 answers it.
 */
export function descriptorText(part: AskablePart, request: RequestFacts): string | undefined {
  switch (part.kind) {
    case "fixed":
      return part.value;
    case "header":
      return request.headers.get(part.header);
    case "remoteAddress": {
      const address = requestKey(part, request);
      return address === "" || isSocketPath(address) ? undefined : address;
    }
  }
}

/**
 * Turns `10.0.0.1:5000` into `10.0.0.1`, and `[::1]:5000` into `::1`: Envoy's descriptors have no
 * brackets, so limits and overrides of an address are written without. No port: returned unchanged.
 */
function withoutPort(address: string): string {
  if (address.startsWith("[")) {
    const end = address.indexOf("]");
    return end === -1 ? address : address.slice(1, end);
  }
  const colon = address.indexOf(":");
  // No colon, or more than the one before a port.
  if (colon === -1 || isSocketPath(address) || address.includes(":", colon + 1)) return address;
  return address.slice(0, colon);
}

/** A caller behind a Unix socket, named or abstract, has no address. */
function isSocketPath(address: string): boolean {
  return address.startsWith("/") || address.startsWith("@");
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
