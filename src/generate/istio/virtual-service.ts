import type { ServicePolicy } from "../../policy/services/service-policy.js";
import { defaultBlocks } from "../../policy/upstream/default-upstream.js";
import type { RetryPolicy } from "../../policy/upstream/retries.js";
import { type ObjectPlace, specObject } from "../base/custom-object.js";
import { noted, type Tree, type TreeMap } from "../base/document.js";
import type { MinorVersion } from "../base/generator.js";
import { isTreeList, plainTree } from "../base/plain-tree.js";
import type { EnvoyContext } from "../envoy/base/context.js";
import { durationText } from "../envoy/base/values.js";
import { retryPolicy } from "../envoy/http/retries.js";
import { servedMsMax } from "../envoy/http/usage.js";
import type { MeshName } from "./mesh-name.js";

/**
 * Returns a service's timeouts and retries. Always generated, because Istio by default retries
 * refusals (503) twice, and never times out.
 *
 * Source: Istio, VirtualService.
 */
export function virtualService(
  service: ServicePolicy,
  { host, port }: MeshName,
  { place, envoyVersion }: { readonly place: ObjectPlace; readonly envoyVersion: MinorVersion },
): TreeMap {
  return specObject({ apiVersion: "networking.istio.io/v1", kind: "VirtualService" }, place, {
    hosts: [host],
    http: [
      {
        ...routeTimes(service, envoyVersion),
        route: [{ destination: { host, port: { number: port } } }],
      },
    ],
  });
}

/** Returns the timeouts and retries of an HTTP route. */
export function routeTimes(service: ServicePolicy, envoyVersion: MinorVersion): TreeMap {
  const requestMs = servedMsMax(service);
  const { retries } = service;
  return {
    timeout: requestMs === 0 ? undefined : durationText(requestMs),
    retries:
      retries === undefined
        ? noted("Without this line, refused requests (503) are retried twice.", { attempts: 0 })
        : retriesOf(retries, envoyVersion),
  };
}

/**
 * Reports timeouts and retries of the policy that a gateway does not apply. A patch would replace
 * those of each route of a host, including the user's.
 *
 * @param reported hosts whose routes have them, since they were merged into the user's
 */
export function reportGatewayTimes(
  services: readonly ServicePolicy[],
  context: EnvoyContext,
  reported: ReadonlySet<string>,
): void {
  for (const service of services) {
    const { name, retries } = service;
    const hosts = service.hosts.filter((host) => !reported.has(host));
    const isDefault =
      servedMsMax(service) === defaultBlocks.timeouts.requestMs && retries === undefined;
    if (isDefault || hosts.length === 0) continue;
    const times = routeTimes(service, context.options.envoyVersion);
    const words = JSON.stringify(plainTree(times));
    context.report({
      id: "HG347",
      spot: { service: name, path: [retries === undefined ? "timeouts" : "retries"] },
      message:
        "the routes of a gateway are your own, so the policy's timeouts and " +
        "retries apply only to callers in the mesh",
      hint: `in VirtualServices of ${hosts.join(", ")}, set for each http route ${words}`,
    });
  }
}

function retriesOf(retries: RetryPolicy, envoyVersion: MinorVersion): Tree {
  return {
    attempts: retries.retriesMax,
    perTryTimeout: retries.perTryMs === undefined ? undefined : durationText(retries.perTryMs),
    retryOn: retryOn(retries, envoyVersion),
  };
}

/** Returns Envoy's conditions and status codes in one text, as Istio expects them. */
function retryOn(retries: RetryPolicy, envoyVersion: MinorVersion): string {
  const { retry_on: words = "", retriable_status_codes: codes } = retryPolicy(
    retries,
    envoyVersion,
  );
  const statuses = codes !== undefined && isTreeList(codes) ? codes.map(String) : [];
  return [String(words), ...statuses].join(",");
}

/** Retry settings of routes that a VirtualService cannot express. Undefined: none. */
export function retryWaits(
  service: ServicePolicy,
  envoyVersion: MinorVersion,
): TreeMap | undefined {
  if (service.retries === undefined) return undefined;
  const { per_try_idle_timeout, retry_back_off, rate_limited_retry_back_off } = retryPolicy(
    service.retries,
    envoyVersion,
  );
  return { per_try_idle_timeout, retry_back_off, rate_limited_retry_back_off };
}
