import { z } from "zod";
import { quotaBucketKey, quotaClassKey } from "../../src/core/quota/quota.js";
import type { GeneratedPolicy } from "../../src/generate/base/generator.js";
import { inboundPort, meshName, outboundVirtualHost } from "../../src/generate/istio/mesh-name.js";
import type { ServicePolicy } from "../../src/policy/services/service-policy.js";
import { type Chain, chainsOf, isHostOf, type VirtualHost } from "./mesh-invariants.js";
import type { TranslatedProxy } from "./translated-istio.js";

/** What has a policy, and is asked of its proxies together. */
type Meant = Pick<GeneratedPolicy, "services" | "rules">;

/**
 * What a policy says and no proxy of a case does; each answer is one such thing: a service that a
 * proxy serves or calls and that was not found there, and a limit that no request can meet.
 */
export function meshGaps(
  proxies: Readonly<Record<string, TranslatedProxy>>,
  { services, rules }: Meant,
): readonly string[] {
  const all = Object.entries(proxies).map(([own, proxy]) => ({ own, chains: chainsOf(proxy) }));
  const asked = all.flatMap(({ own, chains }) => {
    return chains.flatMap((chain) =>
      chain.hosts.flatMap((host) => {
        const service = services.find((one) => isHostOf(host, one, { chain, own }));
        return service === undefined
          ? []
          : [...askedAt(chain, host), ...admittedAt(chain, { host, service })];
      }),
    );
  });
  const quotas = all.flatMap(({ chains }) => chains.flatMap(quotasOf));
  const unmet = rules.filter(({ effect, domain, path }) => {
    const keys = path.map(({ key }) => key);
    const isMet = asked.includes(limitName(domain, keys));
    return effect.kind === "limited" && !isMet && !quotas.includes(limitName(domain, keys.sort()));
  });
  return [
    ...all.flatMap(({ own, chains }) => uncovered(chains, { services, own })),
    ...Object.values(proxies).flatMap((proxy) => unpatched(proxy, services)),
    ...unmet.map(({ domain, label }) => `${domain}: nothing asks for ${label}`),
  ];
}

/** Where each service has to be found, and was not. */
function uncovered(
  chains: readonly Chain[],
  { services, own }: { readonly services: readonly ServicePolicy[]; readonly own: string },
): readonly string[] {
  const isSidecar = chains.some(({ isInbound }) => isInbound);
  if (!isSidecar) {
    const hosts = services.flatMap((service) => service.hosts);
    return chains.flatMap((chain) =>
      hosts
        .filter((host) => chain.hosts.every(({ domains }) => !domains.includes(host)))
        .map((host) => `${own}, ${chain.routes}: ${host} is nowhere`),
    );
  }
  const names = chains.flatMap(({ hosts }) => hosts.map(({ name }) => name));
  const wanted = services.flatMap((service) => {
    const mesh = meshName(service);
    const called = mesh === undefined ? [] : [outboundVirtualHost(mesh)];
    return service.name === own ? [...called, `inbound|http|${inboundPort(service)}`] : called;
  });
  return wanted.filter((name) => !names.includes(name)).map((name) => `${own}: ${name} is nowhere`);
}

/** What is patched into clusters is there in all of the proxies that call a service. */
function unpatched(
  { clusters }: TranslatedProxy,
  services: readonly ServicePolicy[],
): readonly string[] {
  return services.flatMap((service) => {
    const mesh = meshName(service);
    const own = clusters.find(({ name }) => mesh && name === `outbound|${mesh.port}||${mesh.host}`);
    if (own === undefined) return [];
    const text = JSON.stringify(own);
    const { healthChecks, loadBalancing, circuitBreakers, outlierDetection } = service;
    const { panicThresholdPercent: panic } = loadBalancing;
    const wanted = [
      ...(healthChecks === undefined ? [] : ['"health_checks":']),
      ...(panic === undefined ? [] : [`"healthy_panic_threshold":{"value":${panic}}`]),
      ...(circuitBreakers.hostConnectionsMax === undefined ? [] : ['"per_host_thresholds":']),
      ...(loadBalancing.hash === undefined ? [] : ['"lb_policy":"MAGLEV"']),
      ...(outlierDetection?.failurePercentage ? ['"failure_percentage_threshold":'] : []),
    ];
    return wanted
      .filter((part) => !text.includes(part))
      .map((part) => `${String(own["name"])} has no ${part}`);
  });
}

const actionShape = z.record(z.string(), z.looseObject({ descriptor_key: z.string().optional() }));
const perRouteShape = z.object({
  domain: z.string(),
  rate_limits: z.array(z.object({ actions: z.array(actionShape) })),
});

/**
 * The limits that requests of a virtual host ask for, where a filter asks. An action that names no
 * key has the key of its kind. Source: envoy.config.route.v3.RateLimit.Action.
 */
function askedAt({ filters }: Chain, { typed_per_filter_config: reported }: VirtualHost) {
  const name = "envoy.filters.http.ratelimit";
  const { data } = perRouteShape.safeParse(reported[name]);
  if (data === undefined || filters.every((one) => one.name !== name)) return [];
  return data.rate_limits.map(({ actions }) => {
    const keys = actions.flatMap((action) =>
      Object.entries(action).map(([kind, own]) => own.descriptor_key ?? kind),
    );
    return limitName(data.domain, keys);
  });
}

/** The limits that Headgate asks about itself, where admission is asked. */
function admittedAt(
  { filters }: Chain,
  { host, service }: { readonly host: VirtualHost; readonly service: ServicePolicy },
): readonly string[] {
  const name = "envoy.filters.http.ext_proc";
  const isAsked = name in host.typed_per_filter_config && filters.some((one) => one.name === name);
  const { rateLimit } = service;
  if (!isAsked || rateLimit?.inExtProc !== true) return [];
  return rateLimit.descriptors.map(({ parts }) => {
    return limitName(
      rateLimit.domain,
      parts.map(({ key }) => key),
    );
  });
}

/** The limits that a proxy's quotas are held to; the parts of a bucket have no order. */
function quotasOf({ filters }: Chain): readonly string[] {
  return filters.flatMap(({ typed_config: config }) => {
    if (!config["@type"].endsWith("RateLimitQuotaFilterConfig")) return [];
    const found: string[] = [];
    JSON.parse(JSON.stringify(config["bucket_matchers"]), (name, value: unknown) => {
      const entries = z.record(z.string(), z.json()).safeParse(value).data ?? {};
      if (name === "bucket_id_builder" && quotaBucketKey in entries) {
        const keys = Object.keys(entries).filter((key) => !ownKeys.includes(key));
        found.push(limitName(String(config["domain"]), keys.sort()));
      }
      return value;
    });
    return found;
  });
}

/** What a bucket has beside the parts of its limit. */
const ownKeys: readonly string[] = [quotaBucketKey, quotaClassKey];

function limitName(domain: string, keys: readonly string[]): string {
  return `${domain}: ${keys.join(", ")}`;
}
