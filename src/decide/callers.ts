import { addressAttribute } from "../policy/request-facts.js";
import type { CallerKey, KeyedPermits } from "../policy/service-policy.js";
import type { AdmissionRequest } from "./admission-call.js";

/** Envoy's attribute with the name of the route. */
const routeAttribute = "xds.route_name";

/** What tells requests apart: who sent them, or by which route they came. */
export type RequestKey = CallerKey | KeyedPermits["per"];

/**
 * Who sent a request, or by which route it came. Empty where the request does not say it: all of
 * those are one.
 */
export function requestKey(
  by: RequestKey,
  { headers, attributes }: Pick<AdmissionRequest, "headers" | "attributes">,
): string {
  switch (by.kind) {
    case "header":
      return headers.get(by.header) ?? "";
    case "remoteAddress":
      return withoutPort(textOf(attributes.get(addressAttribute)));
    case "route":
      return textOf(attributes.get(routeAttribute));
  }
}

/** The header or the attribute that `requestKey` reads. */
export function requestKeySource(
  by: RequestKey,
): { readonly header: string } | { readonly attribute: string } {
  if (by.kind === "header") return { header: by.header };
  return { attribute: by.kind === "route" ? routeAttribute : addressAttribute };
}

/**
 * A number in [0, 1) that is always the same for a caller, in every replica, and as good as random
 * between callers: near a threshold the same callers keep service.
 *
 * Source: the hash FNV-1a of 32 bits over UTF-16 units, its bits mixed as MurmurHash3 ends.
 */
export function callerHashRatio(caller: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < caller.length; i += 1) {
    hash = Math.imul(hash ^ caller.charCodeAt(i), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}

/** `10.0.0.1:5000` is `10.0.0.1`, `[::1]:5000` is `[::1]`; what has no port stays. */
function withoutPort(address: string): string {
  const colon = address.lastIndexOf(":");
  if (colon === -1 || (address.startsWith("[") && colon < address.indexOf("]"))) return address;
  return address.slice(0, colon);
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
