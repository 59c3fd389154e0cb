import type { PlainMap } from "../generate/base/plain-tree.js";
import { usesExtProc } from "../generate/envoy/http/ext-proc.js";
import { type Asker, askerName, findAskers, isBeforeRouter } from "./askers.js";
import type { EnvoyDump } from "./envoy-dump.js";
import { type Evidence, type Examine, findingsOr, type Look } from "./look.js";
import { mapAt, mapsAt, shownName, textAt } from "./plain.js";

/** Whether requests find their way to Headgate: filters, and the clusters that they ask. */
export const lookAtRoad: Examine = (evidence) => {
  const askers = findAskers(evidence);
  const present = lookForFilters(askers, evidence);
  if (askers.length === 0) return present;
  const clusters = [...new Set(askers.map(({ cluster }) => cluster))];
  return [
    ...present,
    ...lookAtPlaces(askers),
    ...clusters.flatMap((name) => lookAtCluster(name, evidence)),
  ];
};

function lookForFilters(askers: readonly Asker[], { dump, policy }: Evidence): readonly Look[] {
  const id = "HG500";
  if (askers.length === 0) {
    const seen = `${dump.chains.length} HTTP filter chains, and no filter asks Headgate`;
    return [{ kind: "finding", id, severity: "error", seen, todo: filterSnippet }];
  }
  const missing: Look[] = [];
  const has = (kind: Asker["kind"]): boolean => askers.some((asker) => asker.kind === kind);
  const limits = policy?.services.some(
    ({ rateLimit }) => rateLimit !== undefined && !rateLimit.inExtProc,
  );
  if (limits === true && !has("ratelimit")) {
    const seen = "the policy's services have rate limits, and no rate-limit filter asks for them";
    missing.push({ kind: "finding", id, severity: "error", seen, todo: filterSnippet });
  }
  if (policy?.services.some(usesExtProc) === true && !has("extProc")) {
    const seen = "the policy's services have admission, and no ext_proc filter asks for it";
    missing.push({ kind: "finding", id, severity: "error", seen });
  }
  const seen = `asked by: ${askers.map((asker) => shownName(askerName(asker))).join(", ")}`;
  return findingsOr(missing, { id, seen });
}

const filterSnippet = `\
http_filters:
- name: envoy.filters.http.ratelimit
  typed_config:
    "@type": type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit
    domain: YOUR_DOMAIN
    rate_limit_service:
      transport_api_version: V3
      grpc_service: {envoy_grpc: {cluster_name: headgate}}
# or all of it: headgate generate envoy policy.yaml`;

function lookAtPlaces(askers: readonly Asker[]): readonly Look[] {
  const wrong = askers.flatMap((asker): readonly Look[] => {
    const name = shownName(askerName(asker));
    const told = { kind: "finding", id: "HG501", severity: "error" } as const;
    if (asker.filter.isDisabled) {
      return [
        { ...told, severity: "warning", seen: `${name} is disabled unless a route says else` },
      ];
    }
    return isBeforeRouter(asker) ? [] : [{ ...told, seen: `${name} stands behind the router` }];
  });
  return findingsOr(wrong, { id: "HG501", seen: "before the router, and switched on" });
}

function lookAtCluster(name: string, evidence: Evidence): readonly Look[] {
  const { dump } = evidence;
  const cluster = dump.clusters.get(name);
  const shown = shownName(name);
  if (cluster === undefined) {
    const seen = `filters ask the cluster ${shown}, which this Envoy does not have`;
    return [{ kind: "finding", id: "HG502", severity: "error", seen }];
  }
  return [
    { kind: "pass", id: "HG502", seen: `the cluster ${shown} is there` },
    lookAtProtocol(cluster, shown),
    lookAtHosts(name, evidence),
  ];
}

const optionsName = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

function lookAtProtocol(cluster: PlainMap, shown: string): Look {
  const options = mapAt(cluster, "typed_extension_protocol_options", optionsName);
  const isSpoken =
    mapAt(options, "explicit_http_config", "http2_protocol_options") !== undefined ||
    mapAt(cluster, "http2_protocol_options") !== undefined;
  if (isSpoken) return { kind: "pass", id: "HG503", seen: `${shown} speaks HTTP/2` };
  return {
    kind: "finding",
    id: "HG503",
    severity: "error",
    seen: `the cluster ${shown} speaks HTTP/1.1, or what callers speak`,
    todo: `\
typed_extension_protocol_options:
  ${optionsName}:
    "@type": type.googleapis.com/${optionsName}
    explicit_http_config: {http2_protocol_options: {}}`,
  };
}

function lookAtHosts(name: string, { dump, stats }: Evidence): Look {
  const id = "HG504";
  const shown = shownName(name);
  const last = stats.at(-1);
  const [healthy, total] = [
    last?.get(`cluster.${name}.membership_healthy`),
    last?.get(`cluster.${name}.membership_total`),
  ];
  const counted =
    healthy === undefined || total === undefined ? hostsInDump(name, dump) : { healthy, total };
  if (counted === undefined) {
    return { kind: "unseen", id, seen: `hosts of ${shown}: ask config_dump with include_eds` };
  }
  const seen = `${counted.healthy} of ${counted.total} hosts of ${shown} are healthy`;
  if (counted.healthy === 0) return { kind: "finding", id, severity: "error", seen };
  const isPart = counted.healthy < counted.total;
  return isPart ? { kind: "finding", id, severity: "warning", seen } : { kind: "pass", id, seen };
}

function hostsInDump(
  name: string,
  { endpoints }: EnvoyDump,
): { readonly healthy: number; readonly total: number } | undefined {
  const found = endpoints.get(name);
  if (found === undefined) return undefined;
  const hosts = mapsAt(found, "endpoints").flatMap((group) => mapsAt(group, "lb_endpoints"));
  const states = hosts.map((host) => textAt(host, "health_status") ?? "UNKNOWN");
  const isHealthy = (state: string): boolean => state === "HEALTHY" || state === "UNKNOWN";
  return { healthy: states.filter(isHealthy).length, total: hosts.length };
}
