import { z } from "zod";
import { inboundPort, meshName, outboundVirtualHost } from "../../src/generate/istio/mesh-name.js";
import type { ServicePolicy } from "../../src/policy/services/service-policy.js";
import type { TranslatedProxy } from "./translated-istio.js";

const perFilter = z.record(z.string(), z.looseObject({ "@type": z.string() })).default({});

const routeShape = z.looseObject({
  name: z.string().optional(),
  match: z.looseObject({}),
  route: z.looseObject({ cluster: z.string().optional() }).optional(),
  direct_response: z.looseObject({ status: z.int() }).optional(),
  typed_per_filter_config: perFilter,
});
type Route = z.infer<typeof routeShape>;

const hostShape = z.looseObject({
  name: z.string(),
  domains: z.array(z.string()),
  routes: z.array(routeShape).default([]),
  typed_per_filter_config: perFilter,
});

/** Requests of a host, as a proxy knows them. */
export type VirtualHost = z.infer<typeof hostShape>;

const routesShape = z.looseObject({ name: z.string(), virtual_hosts: z.array(hostShape) });

const filterShape = z.looseObject({
  name: z.string(),
  disabled: z.boolean().optional(),
  typed_config: z.looseObject({ "@type": z.string() }),
});
type Filter = z.infer<typeof filterShape>;

const managerShape = z.looseObject({
  http_filters: z.array(filterShape),
  rds: z.object({ route_config_name: z.string() }).optional(),
  route_config: routesShape.optional(),
});

const listenerShape = z.looseObject({
  name: z.string(),
  traffic_direction: z.string().optional(),
  filter_chains: z
    .array(z.looseObject({ filters: z.array(z.looseObject({ typed_config: z.json() })) }))
    .default([]),
});

/** An HTTP connection manager, and what its routes are. */
export interface Chain {
  readonly listener: string;
  /** What its routes are called. */
  readonly routes: string;
  readonly isInbound: boolean;
  readonly filters: readonly Filter[];
  readonly hosts: readonly VirtualHost[];
}

/** One thing that does not hold, in words. */
type Report = (words: string) => void;

/**
 * What has to hold of a proxy with generated patches, whatever the policy; each answer is one thing
 * that does not.
 *
 * @param own the service whose own sidecar it is
 */
export function meshViolations(
  proxy: TranslatedProxy,
  { services, own }: { readonly services: readonly ServicePolicy[]; readonly own: string },
): readonly string[] {
  const found: string[] = [];
  const clusters = new Set(proxy.clusters.map(({ name }) => name));
  const covers = new Map<string, string[]>();
  for (const chain of chainsOf(proxy)) {
    const report: Report = (words) => found.push(`${chain.listener}: ${words}`);
    checkOrder(chain, report);
    checkClusters(chain, clusters, report);
    for (const host of chain.hosts) {
      const service = services.find((one) => isHostOf(host, one, { chain, own }));
      checkRoutes(host, { chain, report });
      checkReported(host, { chain, service, report });
      if (service === undefined) continue;
      const place = `${service.name}, ${chain.isInbound ? "inbound" : "outbound"}`;
      covers.set(place, [...(covers.get(place) ?? []), coverOf(chain, host)]);
    }
    checkStrangers(chain, { services, own, report });
  }
  for (const [place, texts] of covers) {
    if (new Set(texts).size > 1) found.push(`${place}: some listeners treat it unlike others`);
  }
  return found;
}

/** All of them that a proxy has. */
export function chainsOf(proxy: TranslatedProxy): readonly Chain[] {
  const sentOf = new Map(
    proxy.routes.map((one) => routesShape.parse(one)).map((one) => [one.name, one]),
  );
  return proxy.listeners.flatMap((listener) => {
    const { name, traffic_direction: direction, filter_chains } = listenerShape.parse(listener);
    return filter_chains.flatMap(({ filters }) =>
      filters.flatMap(({ typed_config }): Chain[] => {
        const manager = managerShape.safeParse(typed_config).data;
        if (manager === undefined) return [];
        const sent = sentOf.get(manager.rds?.route_config_name ?? "");
        const { name: routes = "", virtual_hosts: hosts = [] } = manager.route_config ?? sent ?? {};
        const isInbound = direction === "INBOUND";
        const filters = manager.http_filters;
        return [{ listener: name, routes: routes, isInbound, filters, hosts }];
      }),
    );
  });
}

/** Whether a virtual host is a service's. */
export function isHostOf(
  { name, domains }: VirtualHost,
  service: ServicePolicy,
  { chain, own }: { readonly chain: Chain; readonly own: string },
): boolean {
  if (chain.isInbound) {
    return service.name === own && name === `inbound|http|${inboundPort(service)}`;
  }
  const mesh = meshName(service);
  const isCalled = mesh !== undefined && name === outboundVirtualHost(mesh);
  return isCalled || service.hosts.some((host) => domains.includes(host));
}

const kinds = [
  "local_ratelimit",
  "ratelimit",
  "rate_limit_quota",
  "ext_proc",
  "adaptive_concurrency",
  "admission_control",
];
const ownFilter = new RegExp(`^envoy\\.filters\\.http\\.(${kinds.join("|")})(\\.|$)`);
const priorityFilter = /^envoy\.filters\.http\.header_mutation\.priority/;

/** Whether a filter of a chain is one that was generated. */
function isGenerated(name: string): boolean {
  return ownFilter.test(name) || priorityFilter.test(name);
}

/** What authenticates comes before whatever counts, asks or refuses. */
function checkOrder({ filters }: Chain, report: Report): void {
  const names = filters.map(({ name }) => name);
  const first = names.findIndex((name) => ownFilter.test(name));
  if (first === -1) return;
  for (const name of names.slice(first)) {
    if (/jwt_authn|rbac|ext_authz/.test(name)) report(`${name} stands behind ${names[first]}`);
  }
  if (!names.slice(first, -1).every(isGenerated)) report("another filter stands among generated");
}

/** Who is asked has to be there, and by a name that HTTP/2 allows: Istio's clusters have none. */
function checkClusters({ filters }: Chain, clusters: ReadonlySet<unknown>, report: Report): void {
  for (const { name, typed_config } of filters.filter((one) => isGenerated(one.name))) {
    for (const [, cluster] of JSON.stringify(typed_config).matchAll(/"cluster_name":"([^"]+)"/g)) {
      if (!clusters.has(cluster)) report(`${name} asks ${cluster}, which is not there`);
    }
    const asked = JSON.stringify(typed_config);
    if (/"cluster_name":"[^"]*\|[^"]*"\}/.test(asked)) report(`${name} asks by no host's name`);
  }
}

/** A generated route has a name; those of others that it precedes keep what they say. */
function checkRoutes(
  { name, routes }: VirtualHost,
  { chain, report }: { readonly chain: Chain; readonly report: Report },
): void {
  for (const [index, route] of routes.entries()) {
    const after = routes.slice(index + 1);
    if (route.route !== undefined) {
      const settings = after.flatMap((one) => Object.entries(one.typed_per_filter_config));
      for (const [filter, setting] of settings) {
        if (isGenerated(filter)) continue;
        const here = route.typed_per_filter_config[filter];
        if (isAddedRoute(route, chain) && JSON.stringify(here) !== JSON.stringify(setting)) {
          report(`${name}: ${route.name} goes past ${filter}`);
        }
      }
    }
    if (isAddedRoute(route, chain)) checkAdded(route, { name, after, chain, report });
    if (takesAll(route) && after.length > 0) report(`${name}: a route takes all before others`);
  }
}

/** Of no VirtualService, and not Istio's own. */
function isAddedRoute({ name }: Route, { isInbound }: Chain): boolean {
  return name !== undefined && name !== "default" && (isInbound || name !== "allow_any");
}

/** Routes that are added refuse, and forward where all others lead: at a service's own sidecar. */
function checkAdded(
  route: Route,
  place: {
    readonly name: string;
    readonly after: readonly Route[];
    readonly chain: Chain;
    readonly report: Report;
  },
): void {
  const { name, after, chain, report } = place;
  const status = route.direct_response?.status ?? 0;
  if (route.direct_response !== undefined) {
    if (status < 400) report(`${name}: ${route.name} answers ${status}`);
    return;
  }
  if (isOfHeadgate(route)) return;
  const last = after.at(-1)?.route?.cluster;
  if (!chain.isInbound || route.route?.cluster !== last) {
    report(`${name}: ${route.name} is a way in that nobody made`);
  }
}

/** No caller comes this way: Headgate says so in the metadata of requests that it let pass. */
function isOfHeadgate({ match }: Route): boolean {
  const said = z.tuple([z.looseObject({ filter: z.literal("headgate") })]);
  return said.safeParse(match["dynamic_metadata"]).success;
}

function takesAll({ match }: Route): boolean {
  const { prefix, ...conditions } = match;
  return prefix === "/" && Object.keys(conditions).length === 0;
}

/** What a virtual host says to filters: to those that are there, and of its own service alone. */
function checkReported(
  { name, typed_per_filter_config: reported }: VirtualHost,
  place: {
    readonly chain: Chain;
    readonly service: ServicePolicy | undefined;
    readonly report: Report;
  },
): void {
  const { chain, service, report } = place;
  for (const [filter, setting] of Object.entries(reported)) {
    if (!isGenerated(filter)) continue;
    if (service === undefined) report(`${name} is nobody's and is told to ${filter}`);
    if (chain.filters.every((one) => one.name !== filter)) report(`${filter} is not there`);
    const isOwn = filter.endsWith(`.${service?.name}`);
    if (setting["@type"].endsWith("ExtensionWithMatcherPerRoute") && !isOwn) {
      report(`${name} turns on ${filter}, of another service`);
    }
  }
}

/**
 * A filter does nothing for a virtual host that does not speak to it, where there are some of
 * nobody; and one to which none of them speaks never acts.
 */
function checkStrangers(
  chain: Chain,
  given: {
    readonly services: readonly ServicePolicy[];
    readonly own: string;
    readonly report: Report;
  },
): void {
  const { filters, hosts, isInbound } = chain;
  const { services, own, report } = given;
  const isOfOne = hosts.some((host) => {
    return services.some((service) => isHostOf(host, service, { chain, own }));
  });
  for (const filter of filters.filter(({ name }) => isGenerated(name))) {
    const isQuiet = isOffUnlessReported(filter);
    const quotaHosts = hostsOfQuota(filter);
    if (!(isInbound && isOfOne) && !isQuiet && quotaHosts.length === 0) {
      report(`${filter.name} acts on hosts of nobody`);
    }
    const known = services.flatMap((service) => service.hosts);
    if (quotaHosts.some((host) => !known.includes(host))) {
      report(`${filter.name} is for hosts of nobody`);
    }
    const isReported = hosts.some((host) => filter.name in host.typed_per_filter_config);
    const isReached = quotaHosts.some((host) => hosts.some(({ name }) => name.startsWith(host)));
    if ((isQuiet || quotaHosts.length > 0) && !isReported && !isReached) {
      report(`${filter.name} never acts`);
    }
  }
}

function isOffUnlessReported({ name, disabled, typed_config: config }: Filter): boolean {
  if (disabled === true) return true;
  const type = config["@type"].split(".").at(-1);
  if (type === "ExtensionWithMatcher") {
    if (priorityFilter.test(name)) return true;
    const matcher = JSON.stringify(config["xds_matcher"]);
    return matcher.startsWith('{"on_no_match":{"action":') && matcher.includes("SkipFilter");
  }
  // Their buckets, descriptors and mutations stand at virtual hosts.
  if (type === "LocalRateLimit") return config["token_bucket"] === undefined;
  return type === "RateLimit" || (type === "HeaderMutation" && config["mutations"] === undefined);
}

/** The hosts that a quota's filter looks for by itself. */
function hostsOfQuota({ typed_config: config }: Filter): readonly string[] {
  if (!config["@type"].endsWith("RateLimitQuotaFilterConfig")) return [];
  const text = JSON.stringify(config["bucket_matchers"]);
  if (!text.includes('"header_name":":authority"')) return [];
  const hosts = [...text.matchAll(/"value_match":\{"exact":"([^"]+)","ignore_case":true\}/g)];
  return hosts.map(([, host = ""]) => host);
}

/** All that is done for a service in one place, to be compared with others. */
function coverOf({ filters }: Chain, host: VirtualHost): string {
  const names = filters.map(({ name }) => name).filter(isGenerated);
  const added = host.routes.map(({ name }) => name ?? "");
  return JSON.stringify([names, host.typed_per_filter_config, host["rate_limits"], added]);
}
