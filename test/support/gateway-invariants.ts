import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { z } from "zod";
import { casePolicy, type GeneratedCase } from "./generated.js";
import type { Translation } from "./translated.js";
import { expectedObjects, gatewayRules, translatedLimits } from "./translated-limits.js";

/** What has to hold of every translation, by its name; each answers what breaks it. */
export const gatewayInvariants: Readonly<
  Record<string, (of: Translation, given: GeneratedCase) => readonly string[]>
> = {
  "no route forwards without the filters of the routes that it precedes": unguardedRoutes,
  "no filter acts on a host that its service does not have": strayFilters,
  "every listener has what is generated": uncoveredListeners,
  "every limit is asked for, at every listener": unreachableLimits,
};

const filtersShape = z.record(z.string(), z.json());
const routeShape = z.object({
  name: z.string().optional(),
  route: z.json().optional(),
  redirect: z.json().optional(),
  directResponse: z.object({ status: z.int() }).optional(),
  metadata: z.json().optional(),
  typedPerFilterConfig: filtersShape.optional(),
});
const hostShape = z.object({
  name: z.string(),
  domains: z.array(z.string()),
  typedPerFilterConfig: filtersShape.optional(),
  routes: z.array(routeShape),
});
const routesShape = z.object({ name: z.string(), virtualHosts: z.array(hostShape).optional() });

/** The virtual hosts of every listener. */
function hostsOf({ routes }: Translation) {
  return routes
    .map((one) => routesShape.parse(one))
    .flatMap(({ name, virtualHosts = [] }) => virtualHosts.map((host) => ({ of: name, ...host })));
}

function namesOf(filters: z.infer<typeof filtersShape> | undefined): readonly string[] {
  return Object.keys(filters ?? {});
}

/** Who makes routes of HTTPRoutes writes down which; a patch does not. */
function unguardedRoutes(of: Translation): readonly string[] {
  return hostsOf(of).flatMap(({ name: host, routes }) =>
    routes.flatMap(({ name = "", metadata, directResponse, typedPerFilterConfig }, at) => {
      if (metadata !== undefined) return [];
      if (directResponse !== undefined && directResponse.status >= 400) return [];
      const own = namesOf(typedPerFilterConfig);
      const wanted = routes.slice(at + 1).flatMap((later) => namesOf(later.typedPerFilterConfig));
      const missing = new Set(wanted.filter((filter) => !own.includes(filter)));
      return [...missing].map((filter) => `${host}: ${name} has no ${filter}`);
    }),
  );
}

const chainShape = z.object({
  filters: z.array(z.object({ name: z.string(), typedConfig: z.json() })),
});
const listenerShape = z.object({
  name: z.string(),
  defaultFilterChain: chainShape.optional(),
  filterChains: z.array(chainShape).optional(),
});
const managerShape = z.object({
  httpFilters: z.array(
    z.object({ name: z.string(), disabled: z.boolean().optional(), typedConfig: filtersShape }),
  ),
  localReplyConfig: z.json().optional(),
  rds: z.object({ routeConfigName: z.string() }),
});

/** The connection managers that serve routes, with the listener that each is in. */
function managersOf({ listeners }: Translation) {
  return listeners.flatMap((one) => {
    const { name, defaultFilterChain, filterChains = [] } = listenerShape.parse(one);
    const chains = [...filterChains, ...(defaultFilterChain ? [defaultFilterChain] : [])];
    return chains
      .flatMap(({ filters }) => filters)
      .flatMap(({ typedConfig }) => managerShape.safeParse(typedConfig).data ?? [])
      .map((manager) => ({ listener: name, ...manager }));
  });
}

/** Filters that are on, and the part of their settings with which they would act on everything. */
const actingParts: Readonly<Record<string, readonly string[]>> = {
  "envoy.filters.http.router": [],
  "envoy.filters.http.jwt_authn": ["rules"],
  "envoy.filters.http.ratelimit": ["rateLimits"],
  "envoy.filters.http.local_ratelimit": ["tokenBucket"],
  "envoy.filters.http.header_mutation.priority": ["mutations"],
};

function strayFilters(of: Translation, given: GeneratedCase): readonly string[] {
  const acting = managersOf(of).flatMap(({ listener, httpFilters }) =>
    httpFilters.flatMap(({ name, disabled = false, typedConfig }) => {
      if (disabled) return [];
      const parts = actingParts[name];
      const isInert = parts?.every((part) => typedConfig[part] === undefined) === true;
      return isInert ? [] : [`${listener}: ${name} acts on every host`];
    }),
  );
  const wanted = wantedFilters(given);
  const stray = hostsOf(of).flatMap(({ name: host, domains, typedPerFilterConfig }) => {
    const own = domains.flatMap((domain) => wanted.get(domain) ?? []);
    const found = namesOf(typedPerFilterConfig).filter((name) => isOfPolicy(name));
    return [
      ...found
        .filter((name) => !own.includes(name))
        .map((name) => `${host}: ${name} is a stranger's`),
      ...own.filter((name) => !found.includes(name)).map((name) => `${host}: ${name} is missing`),
    ];
  });
  return [...acting, ...stray];
}

/** The priority header is removed wherever a service has hosts, and asks nobody. */
function isOfPolicy(filter: string): boolean {
  return !filter.startsWith("envoy.filters.http.header_mutation.");
}

/** The filters that a case's policy wants at each host. */
function wantedFilters(given: GeneratedCase): ReadonlyMap<string, readonly string[]> {
  const { services, quotas } = casePolicy(given);
  return new Map(
    services.flatMap(({ name, hosts, ...service }) => {
      const filters = [
        ...(service.localRateLimit ? ["local_ratelimit"] : []),
        ...(service.usage?.source.kind === "body" ? ["ext_proc.usage"] : []),
        ...(service.adaptiveConcurrency ? ["adaptive_concurrency"] : []),
        ...(service.admissionControl ? ["admission_control"] : []),
        ...quotas
          .filter((quota) => quota.services?.includes(name) ?? true)
          .map((quota) => `rate_limit_quota.${quota.name}`),
      ].map((filter) => `envoy.filters.http.${filter}`);
      return hosts.map((host) => [host, filters] as const);
    }),
  );
}

const gatewayShape = z.object({
  kind: z.literal("Gateway"),
  metadata: z.object({ namespace: z.string(), name: z.string() }),
  spec: z.object({
    listeners: z.array(
      z.object({ name: z.string(), protocol: z.string(), hostname: z.string().optional() }),
    ),
  }),
});

const patchShape = z.object({
  kind: z.literal("EnvoyPatchPolicy"),
  spec: z.object({
    jsonPatches: z.array(
      z.object({
        operation: z.object({
          op: z.string(),
          path: z.string().optional(),
          // A number, a map, or a filter with its name.
          value: z.object({ name: z.string().optional() }).catch({}),
        }),
      }),
    ),
  }),
});

/**
 * What is added to one listener is added to all of them, as the Gateway has them; and the virtual
 * hosts of a service are alike at each.
 */
function uncoveredListeners(of: Translation, given: GeneratedCase): readonly string[] {
  const added = expectedObjects(given)
    .flatMap((object) => patchShape.safeParse(object).data?.spec.jsonPatches ?? [])
    .map(({ operation }) => operation)
    .filter(({ op }) => op === "add");
  const filters = added.flatMap(({ value }) => {
    return value.name?.startsWith("envoy.filters.http.") === true ? [value.name] : [];
  });
  const hasReplies = added.some(({ path }) => path === "/local_reply_config");
  const managers = managersOf(of);
  const hosts = hostsOf(of);
  const domains = casePolicy(given).services.flatMap((service) => service.hosts);
  return gatewayListeners(given).flatMap(({ name, hostname }) => {
    // HTTP/3 has a listener of its own, with the same routes.
    const own = managers.filter(({ rds }) => rds.routeConfigName === name);
    if (own.length === 0) return [`${name}: it has no manager`];
    const missing = own.flatMap(({ listener, httpFilters, localReplyConfig }) => {
      const known = httpFilters.map((filter) => filter.name);
      return [
        ...filters.filter((filter) => !known.includes(filter)),
        ...(hasReplies && localReplyConfig === undefined ? ["local replies"] : []),
      ].map((what) => `${listener}: it has no ${what}`);
    });
    const unlike = domains.flatMap((domain) => {
      const here = hosts.find((host) => host.of === name && host.domains.includes(domain));
      if (here === undefined) return hostname === undefined ? [`${name}: it has no ${domain}`] : [];
      const others = hosts.filter((host) => host.of !== name && host.domains.includes(domain));
      return others.flatMap((other) =>
        shapeOf(other) === shapeOf(here)
          ? []
          : [`${name}: ${domain} is unlike that of ${other.of}`],
      );
    });
    return [...missing, ...unlike];
  });
}

/** What a virtual host does, but for the names that it has of its listener. */
function shapeOf({ of, typedPerFilterConfig, routes }: ReturnType<typeof hostsOf>[number]): string {
  return JSON.stringify({ typedPerFilterConfig, routes })
    .replaceAll(JSON.stringify(of), '"listener"')
    .replaceAll(/"sectionName":"[^"]*"/g, '"sectionName":""');
}

/** Those that serve HTTP. */
function gatewayListeners({ folder }: GeneratedCase) {
  const text = readFileSync(join(folder, "around.yaml"), "utf8");
  return parseAllDocuments(text)
    .flatMap((object) => gatewayShape.safeParse(object.toJS()).data ?? [])
    .flatMap(({ metadata: { namespace, name }, spec }) =>
      spec.listeners
        .filter(({ protocol }) => protocol !== "TCP")
        .map((one) => ({ ...one, name: `${namespace}/${name}/${one.name}` })),
    );
}

/** Routes that ask for nothing of a policy with limits are as wrong as limits without a filter. */
function unreachableLimits(of: Translation, given: GeneratedCase): readonly string[] {
  const asked = translatedLimits(of);
  const managers = managersOf(of);
  return gatewayRules(given).flatMap(({ policy, index, isReportedLater }) =>
    gatewayListeners(given).flatMap(({ name }) => {
      const found = asked.filter((limit) => {
        return limit.policy === policy && limit.index === index && limit.domain === name;
      });
      const isAsked = managers.some(
        ({ rds, httpFilters }) =>
          rds.routeConfigName === name &&
          httpFilters.some((filter) => filter.name === "envoy.filters.http.ratelimit"),
      );
      const isWhole =
        found.length > 0 && found.every((one) => one.isReportedLater === isReportedLater);
      return isAsked && isWhole ? [] : [`${name}: nothing asks for rule ${index} of ${policy}`];
    }),
  );
}
