import type { HeaderField } from "../../core/base/header-field.js";
import { limitsOf, type OverLimit, type Rule } from "../../core/limits/limit.js";
import { fallbackHeader } from "../../core/limits/request-marks.js";
import { type BudgetPolicy, isBudgeted } from "../budgets/budget-policy.js";
import type { ServicePolicy } from "./service-policy.js";

/** What limits and budgets do to requests of a service that pass. */
export interface SoftAnswers {
  /** Names of the headers that they set, in lower case. */
  readonly headers: readonly string[];
  /** Where they send requests, in the order of the policy. */
  readonly clusters: readonly string[];
  /** Whether the route may change. */
  readonly isRouted: boolean;
}

/** A policy's limits and budgets. */
interface Softening {
  readonly budgets: readonly BudgetPolicy[];
  readonly rules: readonly Rule[];
}

/** What a limit or a budget says of requests that pass. */
interface SoftPart {
  readonly over: OverLimit | undefined;
  readonly headers: readonly HeaderField[];
}

/** Returns for each service what its budgets do, and the limits that ext_proc asks for. */
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
