import type { PlainMap } from "../generate/base/plain-tree.js";
import { usesExtProc } from "../generate/envoy/http/ext-proc.js";
import { type Diagnostic, type DoctorCheck, type DoctorInput, findingsOr } from "./diagnostic.js";
import type { EnvoyDump } from "./envoy-dump.js";
import {
  filterName,
  findHeadgateFilters,
  type HeadgateFilter,
  isBeforeRouter,
} from "./headgate-filters.js";
import { mapAt, mapsAt, shownName, textAt } from "./json-access.js";

/** Checks whether requests reach Headgate: the filters, and the clusters that they call. */
export const checkRouting: DoctorCheck = (input) => {
  const filters = findHeadgateFilters(input);
  const present = lookForFilters(filters, input);
  if (filters.length === 0) return present;
  const clusters = [...new Set(filters.map(({ cluster }) => cluster))];
  return [
    ...present,
    ...checkPlaces(filters),
    ...clusters.flatMap((name) => checkCluster(name, input)),
  ];
};

function lookForFilters(
  filters: readonly HeadgateFilter[],
  { dump, policy }: DoctorInput,
): readonly Diagnostic[] {
  const id = "HG500";
  if (filters.length === 0) {
    const seen = `${dump.chains.length} HTTP filter chains, and no filter calls Headgate`;
    return [{ kind: "finding", id, severity: "error", seen, todo: filterSnippet }];
  }
  const missing: Diagnostic[] = [];
  const has = (kind: HeadgateFilter["kind"]): boolean =>
    filters.some((headgateFilter) => headgateFilter.kind === kind);
  const limits = policy?.services.some(
    ({ rateLimit }) => rateLimit !== undefined && !rateLimit.inExtProc,
  );
  if (limits === true && !has("ratelimit")) {
    const seen = "the policy's services have rate limits, but no rate limit filter calls Headgate";
    missing.push({ kind: "finding", id, severity: "error", seen, todo: filterSnippet });
  }
  if (policy?.services.some((one) => usesExtProc(one, policy)) === true && !has("extProc")) {
    const seen = "the policy's services have admission, but no ext_proc filter calls Headgate";
    missing.push({ kind: "finding", id, severity: "error", seen });
  }
  const names = filters.map((headgateFilter) => shownName(filterName(headgateFilter)));
  const seen = `called by: ${names.join(", ")}`;
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

function checkPlaces(filters: readonly HeadgateFilter[]): readonly Diagnostic[] {
  const wrong = filters.flatMap((headgateFilter): readonly Diagnostic[] => {
    const name = shownName(filterName(headgateFilter));
    const reported = { kind: "finding", id: "HG501", severity: "error" } as const;
    if (headgateFilter.filter.isDisabled) {
      return [
        { ...reported, severity: "warning", seen: `${name} is disabled unless a route enables it` },
      ];
    }
    return isBeforeRouter(headgateFilter)
      ? []
      : [{ ...reported, seen: `${name} comes after the router` }];
  });
  return findingsOr(wrong, { id: "HG501", seen: "before the router, and enabled" });
}

function checkCluster(name: string, input: DoctorInput): readonly Diagnostic[] {
  const { dump } = input;
  const cluster = dump.clusters.get(name);
  const shown = shownName(name);
  if (cluster === undefined) {
    const seen = `filters call the cluster ${shown}, which this Envoy does not have`;
    return [{ kind: "finding", id: "HG502", severity: "error", seen }];
  }
  return [
    { kind: "pass", id: "HG502", seen: `the cluster ${shown} exists` },
    checkProtocol(cluster, shown),
    checkHosts(name, input),
  ];
}

const optionsName = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

function checkProtocol(cluster: PlainMap, shown: string): Diagnostic {
  const options = mapAt(cluster, "typed_extension_protocol_options", optionsName);
  const isSpoken =
    mapAt(options, "explicit_http_config", "http2_protocol_options") !== undefined ||
    mapAt(cluster, "http2_protocol_options") !== undefined;
  if (isSpoken) return { kind: "pass", id: "HG503", seen: `${shown} uses HTTP/2` };
  return {
    kind: "finding",
    id: "HG503",
    severity: "error",
    seen: `the cluster ${shown} uses HTTP/1.1, or the protocol of callers`,
    todo: `\
typed_extension_protocol_options:
  ${optionsName}:
    "@type": type.googleapis.com/${optionsName}
    explicit_http_config: {http2_protocol_options: {}}`,
  };
}

function checkHosts(name: string, { dump, stats }: DoctorInput): Diagnostic {
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
    return { kind: "unseen", id, seen: `hosts of ${shown}: use config_dump with include_eds` };
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
