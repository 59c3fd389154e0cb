import type { HeaderField } from "../../../core/base/header-field.js";
import { limitsOf, type OverLimit } from "../../../core/limits/limit.js";
import { quoteText } from "../../../policy/problems/problem.js";
import type { ServicePolicy } from "../../../policy/services/service-policy.js";
import { noted, type Tree, type TreeMap } from "../../base/document.js";
import type { GeneratedPolicy } from "../../base/generator.js";
import type { EnvoyContext } from "../base/context.js";
import { isAskedHere } from "../base/sides.js";

/** What limits and budgets do to requests of a service that pass. */
interface SoftAnswers {
  /** Names of the headers that they set. */
  readonly headers: readonly string[];
  /** Where they send requests, in the order of the policy. */
  readonly clusters: readonly string[];
  /** Whether the route may change. */
  readonly isRouted: boolean;
}

/** Finds them in the policy: of its budgets, and of limits that ext_proc asks for. */
export function softAnswers(
  service: ServicePolicy,
  { budgets, rules }: Pick<GeneratedPolicy, "budgets" | "rules">,
): SoftAnswers {
  const headers: HeaderField[] = [];
  const overs: OverLimit[] = [];
  for (const { services, over, warnAt, warnHeaders } of budgets) {
    const isOfService =
      service.usage !== undefined && (services === undefined || services.includes(service.name));
    if (!isOfService) continue;
    if (over !== undefined) overs.push(over);
    if (warnAt !== undefined) headers.push(...warnHeaders);
  }
  const { rateLimit } = service;
  for (const rule of rateLimit?.inExtProc === true ? rules : []) {
    if (rule.domain !== rateLimit?.domain) continue;
    for (const { over, warn } of limitsOf(rule)) {
      if (over !== undefined) overs.push(over);
      headers.push(...(warn?.headers ?? []));
    }
  }
  const clusters = new Set<string>();
  for (const over of overs) {
    if (over.kind === "annotate") headers.push(...over.headers);
    if (over.kind !== "fallback") continue;
    if (over.to.kind === "cluster") clusters.add(over.to.cluster);
    else headers.push(over.to.header);
  }
  return {
    headers: [...new Set(headers.map(({ name }) => name.toLowerCase()))],
    clusters: [...clusters],
    isRouted: overs.some(({ kind }) => kind === "fallback"),
  };
}

/**
 * Routes to the clusters to which limits and budgets send a service's requests. They go before all
 * others, and look at what Headgate has said of the request, which no caller can say.
 */
export function fallbackRoutes(
  service: ServicePolicy,
  context: EnvoyContext,
  action: TreeMap,
): readonly Tree[] {
  if (!isAskedHere(context)) return [];
  return reachedClusters(service, context).map((cluster, index) =>
    noted("Requests that Headgate sends elsewhere.", {
      name: `${service.name}-fallback-${index + 1}`,
      match: {
        prefix: "/",
        dynamic_metadata: [
          {
            filter: "headgate",
            path: [{ key: "fallback" }],
            value: { string_match: { exact: cluster } },
          },
        ],
      },
      route: { cluster, ...action },
    }),
  );
}

function reachedClusters(service: ServicePolicy, context: EnvoyContext): readonly string[] {
  const { clusters } = softAnswers(service, context.policy);
  if (context.isWhole !== true) return clusters;
  return clusters.filter((cluster) => {
    if (context.policy.services.some(({ name }) => name === cluster)) return true;
    context.report({
      id: "HG326",
      spot: { service: service.name, path: [] },
      message: `its sidecar has no cluster ${quoteText(cluster)}, so no request falls back to it there`,
      hint: "generate an edge proxy or fragments, or fall back by a header that the service reads",
    });
    return false;
  });
}
