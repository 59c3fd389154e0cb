import type { Tree } from "../base/document.js";
import { connectionFilters } from "../envoy/bootstrap/tcp-listener.js";
import { networkFilterPatch } from "./envoy-filter.js";
import type { IstioPlace } from "./place.js";

/**
 * The limits of connections at the TCP servers of the mesh's gateway, found by their ports. What
 * the connections lead to is said by the TCP routes of the user.
 */
export function tcpPatches({ context, envoy }: IstioPlace): readonly Tree[] {
  if (context !== "GATEWAY") return [];
  return envoy.policy.proxies.tcpListeners.flatMap((listener) =>
    connectionFilters(listener, envoy).map((filter) =>
      networkFilterPatch({ context, port: listener.port }, filter),
    ),
  );
}
