import { roleHeader } from "../core/admission/exchange-messages.js";
import type { PlainMap } from "../generate/base/plain-tree.js";
import type { DoctorInput } from "./diagnostic.js";
import type { HttpChain, HttpFilter } from "./envoy-dump.js";
import { isOfType, mapAt, mapsAt, textAt } from "./json-access.js";

/** A filter that calls Headgate, and its position. */
export interface HeadgateFilter {
  /** "usage": it forwards responses, and asks for no decision. */
  readonly kind: "ratelimit" | "extProc" | "usage";
  readonly chain: HttpChain;
  readonly filter: HttpFilter;
  readonly config: PlainMap;
  /** Cluster that it calls. */
  readonly cluster: string;
}

const rateLimitType = "envoy.extensions.filters.http.ratelimit.v3.RateLimit";
const extProcType = "envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor";
const routerType = "envoy.extensions.filters.http.router.v3.Router";

/** Returns the cluster of a filter's gRPC service. */
function clusterOf(config: PlainMap): string | undefined {
  return (
    textAt(config, "grpc_service", "envoy_grpc", "cluster_name") ??
    textAt(config, "rate_limit_service", "grpc_service", "envoy_grpc", "cluster_name")
  );
}

/**
 * Returns the filters that call Headgate. Rate limit filters do. An external processor does if it
 * uses a cluster of rate limit filters or the one that the user names. Without such a name, it also
 * does if its cluster is named after Headgate, or a route names a service of Headgate's.
 */
export function findHeadgateFilters({
  dump,
  cluster: named,
}: DoctorInput): readonly HeadgateFilter[] {
  const found = dump.chains.flatMap((chain) =>
    chain.filters.flatMap((filter) => askerOf(chain, filter)),
  );
  const limits = found.filter(
    ({ kind, cluster }) => kind === "ratelimit" && (named === undefined || cluster === named),
  );
  const known = new Set(limits.map(({ cluster }) => cluster));
  if (named !== undefined) known.add(named);
  const isHeadgates = ({ cluster, chain }: HeadgateFilter): boolean =>
    known.has(cluster) || (named === undefined && (isNamedAfter(cluster) || tellsService(chain)));
  return found.filter(
    (headgateFilter) => limits.includes(headgateFilter) || isHeadgates(headgateFilter),
  );
}

function askerOf(chain: HttpChain, filter: HttpFilter): readonly HeadgateFilter[] {
  const { config } = filter;
  if (config === undefined) return [];
  const isRateLimit = isOfType(config, rateLimitType);
  if (!isRateLimit && !isOfType(config, extProcType)) return [];
  const cluster = clusterOf(config);
  if (cluster === undefined) return [];
  const kind = isRateLimit ? "ratelimit" : showsUsage(config) ? "usage" : "extProc";
  return [{ kind, chain, filter, config, cluster }];
}

function showsUsage(config: PlainMap): boolean {
  return mapsAt(config, "grpc_service", "initial_metadata").some(
    (header) => textAt(header, "key") === roleHeader && textAt(header, "value") === "usage",
  );
}

function isNamedAfter(cluster: string): boolean {
  return cluster.toLowerCase().includes("headgate");
}

const serviceHeader = "x-headgate-service";

function tellsService({ routes }: HttpChain): boolean {
  return mapsAt(routes, "virtual_hosts").some((host) =>
    Object.values(mapAt(host, "typed_per_filter_config") ?? {}).some((config) =>
      mapsAt(config, "overrides", "grpc_initial_metadata").some(
        (header) => textAt(header, "key") === serviceHeader,
      ),
    ),
  );
}

/** Reports whether a filter is before the router of its chain. */
export function isBeforeRouter({ chain, filter }: HeadgateFilter): boolean {
  const router = chain.filters.findIndex(({ config }) => isOfType(config, routerType));
  return router === -1 || chain.filters.indexOf(filter) < router;
}

/** Returns the name of such a filter in a report. */
export function filterName({ kind, chain }: HeadgateFilter): string {
  const word = { ratelimit: "rate limit", extProc: "ext_proc", usage: "ext_proc.usage" }[kind];
  return `${word} of listener ${chain.listener || "?"}`;
}
