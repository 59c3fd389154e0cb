import { parse, parseAllDocuments } from "yaml";
import { z } from "zod";
import { RateLimitUnit } from "../../src/gen/api/ratelimit/config/ratelimit/v3/rls_conf_pb.js";
import { caseFiles, type GeneratedCase } from "./generated.js";
import type { Translation } from "./translated.js";
import type { ConfigInit } from "./xds-server.js";

/** A limit of a BackendTrafficPolicy, as one route of a translation asks for it. */
export interface TranslatedLimit {
  /** Namespace and name of its BackendTrafficPolicy. */
  readonly policy: string;
  /** Where it stands among the policy's rules. */
  readonly index: number;
  readonly domain: string;
  /** The entries of its descriptor: without a value, each value counts by itself. */
  readonly entries: readonly { readonly key: string; readonly value: string | undefined }[];
  /** Whether hits are told once the response is through. */
  readonly isReportedLater: boolean;
}

/** Each action has one name, and below it these. */
const namesShape = z.object({
  descriptorKey: z.string(),
  descriptorValue: z.string().optional(),
});
const actionShape = z.record(z.string(), z.json());

const perRouteShape = z.object({
  domain: z.string(),
  rateLimits: z.array(
    z.object({ actions: z.array(actionShape), applyOnStreamDone: z.boolean().optional() }),
  ),
});

const routeShape = z.object({
  metadata: z.object({
    filterMetadata: z.object({
      "envoy-gateway": z.object({
        policies: z
          .array(z.object({ kind: z.string(), namespace: z.string(), name: z.string() }))
          .optional(),
      }),
    }),
  }),
  typedPerFilterConfig: z
    .object({ "envoy.filters.http.ratelimit": perRouteShape.optional() })
    .optional(),
});

const routesShape = z.object({
  virtualHosts: z.array(z.object({ routes: z.array(z.json()) })).optional(),
});

/** The limits that the routes of a translation ask for; patched routes ask for none. */
export function translatedLimits({ routes }: Translation): readonly TranslatedLimit[] {
  const all = routes.flatMap((one) => routesShape.parse(one).virtualHosts ?? []);
  return all
    .flatMap((host) => host.routes)
    .flatMap((route) => {
      const { data } = routeShape.safeParse(route);
      return data === undefined ? [] : limitsOf(data);
    });
}

function limitsOf(route: z.infer<typeof routeShape>): readonly TranslatedLimit[] {
  const own = route.typedPerFilterConfig?.["envoy.filters.http.ratelimit"];
  const { policies = [] } = route.metadata.filterMetadata["envoy-gateway"];
  const policy = policies.find(({ kind }) => kind === "BackendTrafficPolicy");
  if (own === undefined || policy === undefined) return [];
  const limits: TranslatedLimit[] = [];
  for (const { actions, applyOnStreamDone = false } of own.rateLimits) {
    const last = limits.at(-1);
    // What is told later stands behind what is asked as the request comes.
    if (applyOnStreamDone && last !== undefined) limits.pop();
    limits.push({
      policy: `${policy.namespace}/${policy.name}`,
      index: limits.length,
      domain: own.domain,
      entries: actions.map(entryOf),
      isReportedLater: applyOnStreamDone,
    });
  }
  return limits;
}

function entryOf(action: z.infer<typeof actionShape>): TranslatedLimit["entries"][number] {
  const [made] = Object.values(action).map((one) => namesShape.parse(one));
  const { descriptorKey: key = "", descriptorValue: value } = made ?? {};
  // What Envoy fills in is any value.
  return { key, value: value?.startsWith("%") === true ? undefined : value };
}

const unitShape = z.enum(["Second", "Minute", "Hour", "Day", "Week", "Month", "Year"]);

const policyShape = z.object({
  kind: z.literal("BackendTrafficPolicy"),
  metadata: z.object({ namespace: z.string(), name: z.string() }),
  spec: z.object({
    rateLimit: z
      .object({
        global: z.object({
          rules: z.array(
            z.object({
              limit: z.object({ requests: z.int(), unit: unitShape }),
              cost: z.object({ response: z.unknown() }).optional(),
              shadowMode: z.boolean().optional(),
            }),
          ),
        }),
      })
      .optional(),
  }),
});

const deploymentShape = z.object({
  provider: z.object({
    kubernetes: z.object({
      rateLimitDeployment: z.object({
        container: z.object({ env: z.array(z.object({ name: z.string(), value: z.string() })) }),
      }),
    }),
  }),
});

/** What a case says of the environment of Envoy Gateway's rate-limit pods. */
export function podSettings(given: GeneratedCase): Readonly<Record<string, string>> {
  const map = parse(caseFiles(given).get("envoy-gateway.yaml") ?? "");
  const settings = deploymentShape.parse(parse(map.data["envoy-gateway.yaml"]));
  const { env } = settings.provider.kubernetes.rateLimitDeployment.container;
  return Object.fromEntries(env.map(({ name, value }) => [name, value]));
}

/** What a generated BackendTrafficPolicy says of a limit. */
export interface GatewayRule {
  readonly policy: string;
  readonly index: number;
  readonly requests: number;
  readonly unit: z.infer<typeof unitShape>;
  readonly isReportedLater: boolean;
  readonly isShadow: boolean;
}

/** The objects that a case gives. */
export function expectedObjects(given: GeneratedCase): readonly unknown[] {
  const texts = [...caseFiles(given)].filter(([path]) => path.endsWith(".yaml"));
  return texts.flatMap(([, text]) => parseAllDocuments(text).map((one) => one.toJS()));
}

/** The limits of a case's BackendTrafficPolicies. */
export function gatewayRules(given: GeneratedCase): readonly GatewayRule[] {
  return expectedObjects(given).flatMap((object) => {
    const { data } = policyShape.safeParse(object);
    if (data === undefined) return [];
    const { metadata, spec } = data;
    return (spec.rateLimit?.global.rules ?? []).map(
      ({ limit, cost, shadowMode = false }, index) => ({
        policy: `${metadata.namespace}/${metadata.name}`,
        index,
        ...limit,
        isReportedLater: cost?.response !== undefined,
        isShadow: shadowMode,
      }),
    );
  });
}

/** One entry, and what is below it. */
interface Chain {
  readonly key: string;
  readonly value: string;
  readonly shadowMode: boolean;
  readonly rateLimit?: { readonly requestsPerUnit: number; readonly unit: RateLimitUnit };
  readonly descriptors: Chain[];
}

/**
 * What Envoy Gateway hands to its rate-limit service with a translation: a set of limits for each
 * listener, and in it a chain of descriptors for each rule of a route.
 *
 * Source: envoyproxy/gateway 1.8, internal/xds/translator/ratelimit.go.
 */
export function limitConfigs(given: GeneratedCase, of: Translation): readonly ConfigInit[] {
  const rules = gatewayRules(given);
  const chains = new Map<string, Chain[]>();
  for (const { policy, index, domain, entries } of translatedLimits(of)) {
    const rule = rules.find((one) => one.policy === policy && one.index === index);
    if (rule === undefined) throw new Error(`${policy} has no rule ${index}`);
    chains.set(domain, [...(chains.get(domain) ?? []), ...chainOf(entries, rule)]);
  }
  return [...chains].map(([domain, descriptors]) => {
    return { name: domain, domain, descriptors: merged(descriptors) };
  });
}

function chainOf(entries: TranslatedLimit["entries"], rule: GatewayRule): Chain[] {
  const unit = RateLimitUnit[rule.unit.toUpperCase() as keyof typeof RateLimitUnit];
  const rateLimit = { requestsPerUnit: rule.requests, unit };
  return entries.reduceRight<Chain[]>((below, { key, value = "" }, at) => {
    const limit = below.length === 0 ? { rateLimit } : {};
    // The first entry is the route's own, and of no rule.
    return [{ key, value, shadowMode: rule.isShadow && at > 0, descriptors: below, ...limit }];
  }, []);
}

/** Chains of one route are below one entry. */
function merged(chains: readonly Chain[]): Chain[] {
  const routes = new Map<string, Chain>();
  for (const chain of chains) {
    const known = routes.get(chain.key)?.descriptors ?? [];
    routes.set(chain.key, { ...chain, descriptors: [...known, ...chain.descriptors] });
  }
  return [...routes.values()];
}
