import type { HeaderField } from "../../core/base/header-field.js";
import { limitsOf, type OverLimit, type Rule } from "../../core/limits/limit.js";
import { fallbackHeader } from "../../core/limits/request-marks.js";
import { type BudgetPolicy, isBudgeted } from "../budgets/budget-policy.js";
import type { ServicePolicy } from "./service-policy.js";

/** Effects of limits and budgets on admitted requests of a service. */
export interface SoftAnswers {
  /** Names of the headers that they set, in lower case. */
  readonly headers: readonly string[];
  /** Clusters to which they send requests, in the order of the policy. */
  readonly clusters: readonly string[];
  /** Whether the route may change. */
  readonly isRouted: boolean;
}

/** The limits and budgets of a policy. */
interface Softening {
  readonly budgets: readonly BudgetPolicy[];
  readonly rules: readonly Rule[];
}

/** Effects of one limit or budget on admitted requests. */
interface SoftPart {
  readonly over: OverLimit | undefined;
  readonly headers: readonly HeaderField[];
}

/** Returns for each service the effects of its budgets, and of limits that ext_proc requests. */
export function softAnswers({
  budgets,
  rules,
}: Softening): (service: Pick<ServicePolicy, "name" | "usage" | "rateLimit">) => SoftAnswers {
  const byDomain = new Map<string, SoftPart[]>();
  for (const rule of rules) {
    for (const { over, warn } of limitsOf(rule)) {
      if (over === undefined && warn === undefined) continue;
      const parts = byDomain.get(rule.domain) ?? [];
      byDomain.set(rule.domain, parts);
      parts.push({ over, headers: warn?.headers ?? [] });
    }
  }
  return (service) => {
    const parts: SoftPart[] = [];
    for (const budget of budgets) {
      if (!isBudgeted(service, budget)) continue;
      const { over, warnAt, warnHeaders } = budget;
      parts.push({ over, headers: warnAt === undefined ? [] : warnHeaders });
    }
    const { rateLimit } = service;
    if (rateLimit?.inExtProc === true) parts.push(...(byDomain.get(rateLimit.domain) ?? []));
    return joined(parts);
  };
}

function joined(parts: readonly SoftPart[]): SoftAnswers {
  const names = new Set<string>();
  const clusters = new Set<string>();
  let isRouted = false;
  for (const { over, headers } of parts) {
    for (const { name } of headers) names.add(name);
    if (over?.kind === "annotate") for (const { name } of over.headers) names.add(name);
    if (over?.kind !== "fallback") continue;
    isRouted = true;
    if (over.to.kind === "cluster") clusters.add(over.to.cluster);
    names.add(over.to.kind === "cluster" ? fallbackHeader : over.to.header.name);
  }
  return { headers: [...names], clusters: [...clusters], isRouted };
}
