import { addressAttribute, type RequestFacts, routeAttribute } from "../cel/request-facts.js";
import type { AskablePart } from "./descriptor-parts.js";
import type { KeyedPermits } from "./service-admission.js";

/** What headers and attributes alone tell. */
export type RequestKey = Exclude<KeyedPermits["per"], { readonly kind: "model" }>;

/**
 * Who sent a request, or by which route it came. Empty where the request does not say it: all of
 * those are one.
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
 * What Envoy writes for a part of a descriptor; undefined where it leaves the descriptor out. A
 * header that is there and empty makes an entry with an empty value.
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
 * `10.0.0.1:5000` is `10.0.0.1`, `[::1]:5000` is `::1`: Envoy's descriptors have no brackets, so
 * that limits and overrides of an address are written without. What has no port stays.
 */
function withoutPort(address: string): string {
  if (address.startsWith("[")) {
    const end = address.indexOf("]");
    return end === -1 ? address : address.slice(1, end);
  }
  const colon = address.indexOf(":");
  // None, or more than the one before a port.
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
