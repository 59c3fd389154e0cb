import type { Tree, TreeMap } from "../base/document.js";
import type { ExistingObject } from "../base/existing-object.js";
import type { GenerateProblem } from "../base/generator.js";
import { fullHost, istioGroup } from "../base/merge-rules.js";
import { type MergeConflict, mergeMaps } from "../base/merge-values.js";
import {
  isPlainList,
  isPlainMap,
  mapIn,
  type PlainMap,
  type PlainValue,
} from "../base/plain-tree.js";
import { reportConflicts, routeStyle } from "./merge-into.js";

/** Timeouts and retries of a service. */
export interface ServiceTimes {
  readonly service: string;
  /** The service's host in the mesh. */
  readonly meshHost: string;
  /** Hosts at the gateway. Empty if no gateway is configured. */
  readonly gatewayHosts: readonly string[];
  /** Fields of an HTTP route. */
  readonly times: TreeMap;
}

/** The result of merging into a user's VirtualServices. */
export interface MergedTimes {
  readonly objects: readonly Tree[];
  readonly problems: readonly GenerateProblem[];
  readonly merged: readonly ExistingObject[];
  /** Hosts of the mesh and of gateways whose routes have the settings. */
  readonly hosts: ReadonlySet<string>;
}

/**
 * Merges services' timeouts and retries into the HTTP routes that lead to them, in VirtualServices
 * for one of their hosts. Everything that a route already sets stays. Pure.
 */
export function mergeTimes(
  users: readonly ExistingObject[],
  services: readonly ServiceTimes[],
): MergedTimes {
  const problems: GenerateProblem[] = [];
  const hosts = new Set<string>();
  const merged: ExistingObject[] = [];
  const objects: Tree[] = [];
  for (const user of users) {
    if (user.group !== istioGroup || user.kind !== "VirtualService") continue;
    const served = services.flatMap((one) => {
      const found = hostsOf(one, user);
      return found.length === 0 ? [] : [{ ...one, found }];
    });
    const spec = mapIn(user.object, "spec");
    const routes = isPlainList(spec["http"]) ? spec["http"] : [];
    let isReported = false;
    const http = routes.map((route, index) => {
      if (!isPlainMap(route)) return route;
      const service = served.find(({ meshHost }) => leadsTo(route, meshHost, user.namespace));
      if (service === undefined) return route;
      isReported = true;
      for (const host of service.found) hosts.add(host);
      const conflicts: MergeConflict[] = [];
      const place = { path: ["spec", "http", index], style: routeStyle, conflicts };
      const reported = mergeMaps(route, service.times, place);
      reportConflicts(user, conflicts, { service: service.service, problems });
      return reported;
    });
    if (!isReported) continue;
    merged.push(user);
    objects.push({ ...user.object, apiVersion: `${istioGroup}/v1`, spec: { ...spec, http } });
  }
  return { objects, problems, merged, hosts };
}

/** Returns a service's hosts that a VirtualService is for, in the mesh or at a gateway. */
function hostsOf(
  { meshHost, gatewayHosts }: ServiceTimes,
  { object, namespace }: ExistingObject,
): readonly string[] {
  const { hosts, gateways = ["mesh"] } = mapIn(object, "spec");
  if (!isPlainList(hosts) || !isPlainList(gateways)) return [];
  const ofMesh =
    gateways.includes("mesh") && hosts.some((one) => fullHost(one, namespace, meshHost));
  const isOfGateway = gateways.some((one) => one !== "mesh");
  const ofGateway = gatewayHosts.filter((host) => hosts.some((one) => takes(one, host)));
  return [...(ofMesh ? [meshHost] : []), ...(isOfGateway ? ofGateway : [])];
}

function takes(pattern: PlainValue, host: string): boolean {
  if (pattern === host || pattern === "*") return true;
  return typeof pattern === "string" && pattern.startsWith("*.") && host.endsWith(pattern.slice(1));
}

/** Also true if it leads to other hosts as well, for example by weights. */
function leadsTo(route: PlainMap, host: string, namespace: string): boolean {
  const { route: destinations } = route;
  if (!isPlainList(destinations)) return false;
  return destinations.some((one) => {
    return isPlainMap(one) && fullHost(mapIn(one, "destination")["host"], namespace, host);
  });
}
