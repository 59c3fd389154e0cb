import type { PlainMap } from "../generate/base/plain-tree.js";
import type { DoctorInput } from "./diagnostic.js";
import { findHeadgateFilters, type HeadgateFilter } from "./headgate-filters.js";
import { isOfType, isTrueAt, mapAt, mapsAt, numberAt, textAt } from "./json-access.js";

/** One entry of a descriptor as Envoy creates it. */
export interface AskedEntry {
  readonly key: string;
  /** Undefined: it depends on the request. */
  readonly value: string | undefined;
  /** Whether Envoy leaves the entry out if the request has no such value. */
  readonly isOptional: boolean;
}

/** A descriptor that an Envoy sends, and where it is configured first. */
export interface AskedDescriptor {
  readonly domain: string;
  /** Undefined if the descriptor has an unknown action, so that nothing is known about it. */
  readonly entries: readonly AskedEntry[] | undefined;
  readonly where: string;
  /** Whether requests ask for it with no hits, to see whether there is room. */
  readonly isPeeked: boolean;
  /** Whether it is sent after the response, when costs are known. */
  readonly isChargedLater: boolean;
}

/** Descriptors, domains and clusters of an Envoy's routes. */
export interface Asked {
  /** Each descriptor once. */
  readonly descriptors: readonly AskedDescriptor[];
  /** Domains that are used, or would be used by default. */
  readonly domains: ReadonlySet<string>;
  /** Clusters of routes, and whether any of these routes checks rate limits. */
  readonly clusters: ReadonlyMap<string, boolean>;
}

const perRouteType = "envoy.extensions.filters.http.ratelimit.v3.RateLimitPerRoute";

/** Follows the routes behind each rate limit filter that calls Headgate. */
export function findAsked(input: DoctorInput): Asked {
  const descriptors = new Map<string, AskedDescriptor>();
  const domains = new Set<string>();
  const clusters = new Map<string, boolean>();
  const filters = findHeadgateFilters(input).filter(({ kind }) => kind === "ratelimit");
  for (const headgateFilter of filters) {
    for (const route of routesBehind(headgateFilter)) {
      if (route.isOff) continue;
      const { domain, limits } = route;
      if (limits.length > 0) domains.add(domain);
      for (const limit of limits) {
        const entries = entriesOf(limit);
        const key = JSON.stringify([domain, entries]);
        const before = descriptors.get(key);
        const { where = route.name } = before ?? {};
        const isLater = isTrueAt(limit, "apply_on_stream_done");
        const isPeek = !isLater && numberAt(limit, "hits_addend", "number") === 0;
        descriptors.set(key, {
          domain,
          entries,
          where,
          isPeeked: isPeek || before?.isPeeked === true,
          isChargedLater: isLater || before?.isChargedLater === true,
        });
      }
    }
  }
  for (const chain of input.dump.chains) {
    const asking = filters.filter((headgateFilter) => headgateFilter.chain === chain);
    for (const { cluster, isAsking } of targetsOf(chain.routes, asking)) {
      clusters.set(cluster, isAsking || clusters.get(cluster) === true);
    }
  }
  return { descriptors: [...descriptors.values()], domains, clusters };
}

interface AskingRoute {
  readonly name: string;
  readonly target: readonly string[];
  readonly isOff: boolean;
  readonly domain: string;
  readonly limits: readonly PlainMap[];
}

function routesBehind({ chain, filter, config }: HeadgateFilter): readonly AskingRoute[] {
  const { routes } = chain;
  const own = mapsAt(config, "rate_limits");
  return mapsAt(routes, "virtual_hosts").flatMap((host) =>
    mapsAt(host, "routes").map((route): AskingRoute => {
      const settings = [route, host, routes].map((level) =>
        mapAt(level, "typed_per_filter_config", filter.name),
      );
      const nearest = settings.find((setting) => setting !== undefined);
      const perRoute = isOfType(nearest, perRouteType) ? nearest : undefined;
      const domain = textAt(perRoute, "domain") ?? textAt(config, "domain") ?? "";
      const placed = mapsAt(perRoute, "rate_limits");
      const atRoute = mapsAt(route, "route", "rate_limits");
      const inherited = atRoute.length > 0 ? atRoute : mapsAt(host, "rate_limits");
      // Limits of the filter, or of the route for the filter, replace both others.
      const [limits = []] = [placed, own, inherited].filter((list) => list.length > 0);
      return {
        name: textAt(route, "name") ?? `${textAt(host, "name") ?? "?"}, a route without a name`,
        target: clustersOf(route),
        isOff: isTrueAt(nearest, "disabled") || (filter.isDisabled && nearest === undefined),
        domain,
        limits,
      };
    }),
  );
}

function clustersOf(route: PlainMap): readonly string[] {
  const one = textAt(route, "route", "cluster");
  const weighted = mapsAt(route, "route", "weighted_clusters", "clusters");
  const names = weighted.map((part) => textAt(part, "name")).filter((name) => name !== undefined);
  return one === undefined ? names : [one, ...names];
}

interface Target {
  readonly cluster: string;
  readonly isAsking: boolean;
}

function targetsOf(
  routes: PlainMap | undefined,
  asking: readonly HeadgateFilter[],
): readonly Target[] {
  const known = asking.flatMap((headgateFilter) => routesBehind(headgateFilter));
  const asked = known.flatMap(({ target, isOff, limits }) =>
    target.map((cluster) => ({ cluster, isAsking: !isOff && limits.length > 0 })),
  );
  const all = mapsAt(routes, "virtual_hosts").flatMap((host) => mapsAt(host, "routes"));
  const others = all.flatMap(clustersOf).map((cluster) => ({ cluster, isAsking: false }));
  return [...asked, ...others];
}

/** Returns the entries; undefined if one of the actions is unknown. */
function entriesOf(limit: PlainMap): readonly AskedEntry[] | undefined {
  const entries = mapsAt(limit, "actions").map(entryOf);
  return entries.every((entry) => entry !== undefined) ? entries : undefined;
}

/** Source: envoy.config.route.v3.RateLimit.Action. */
function entryOf(action: PlainMap): AskedEntry | undefined {
  const [kind, ...others] = Object.keys(action);
  if (kind === undefined || others.length > 0) return undefined;
  const defaultKey = defaultKeys[kind];
  if (defaultKey === undefined && !namedKinds.includes(kind)) return undefined;
  const settings = mapAt(action, kind);
  const key =
    textAt(settings, "descriptor_key") ??
    textAt(settings, "typed_config", "descriptor_key") ??
    defaultKey;
  if (key === undefined) return undefined;
  const value = textAt(settings, "descriptor_value");
  return { key, value: value === "" ? undefined : value, isOptional: isOptional(settings) };
}

function isOptional(settings: PlainMap | undefined): boolean {
  return isTrueAt(settings, "skip_if_absent");
}

/** Default keys of actions whose key is optional. */
const defaultKeys: Readonly<Record<string, string | undefined>> = {
  source_cluster: "source_cluster",
  destination_cluster: "destination_cluster",
  remote_address: "remote_address",
  masked_remote_address: "masked_remote_address",
  generic_key: "generic_key",
  header_value_match: "header_match",
  query_parameter_value_match: "query_match",
};

const namedKinds: readonly string[] = [
  "request_headers",
  "query_parameters",
  "dynamic_metadata",
  "metadata",
  "extension",
];
