import type { HeaderField } from "../../core/base/header-field.js";
import { limitsOf, type OverLimit, type Rule } from "../../core/limits/limit.js";
import { fallbackHeader } from "../../core/limits/request-marks.js";
import { type BudgetPolicy, isBudgeted } from "../budgets/budget-policy.js";
import type { ServicePolicy } from "./service-policy.js";

/**
 * Returns, for each service, the names of request headers that limits of its domain and its budgets
 * may set. Only they may say what is in them, so callers' own are removed.
 */
export function markingHeaders(
  rules: readonly Rule[],
  budgets: readonly BudgetPolicy[],
): (service: Pick<ServicePolicy, "name" | "rateLimit" | "usage">) => readonly string[] {
  const byDomain = new Map<string, Set<string>>();
  for (const rule of rules) {
    for (const { over, warn } of limitsOf(rule)) {
      if (over === undefined && warn === undefined) continue;
      const names = byDomain.get(rule.domain) ?? new Set();
      byDomain.set(rule.domain, names);
      addNames(names, over, warn?.headers ?? []);
    }
  }
  return (service) => {
    const { rateLimit } = service;
    const names = new Set(rateLimit?.inExtProc === true ? byDomain.get(rateLimit.domain) : []);
    for (const budget of budgets) {
      if (!isBudgeted(service, budget)) continue;
      addNames(names, budget.over, budget.warnAt === undefined ? [] : budget.warnHeaders);
    }
    return [...names];
  };
}

function addNames(
  names: Set<string>,
  over: OverLimit | undefined,
  warnHeaders: readonly HeaderField[],
): void {
  for (const { name } of [...warnHeaders, ...headersOf(over)]) names.add(name);
  if (over?.kind === "fallback" && over.to.kind === "cluster") names.add(fallbackHeader);
}

function headersOf(over: OverLimit | undefined): readonly HeaderField[] {
  if (over?.kind === "annotate") return over.headers;
  return over?.kind === "fallback" && over.to.kind === "header" ? [over.to.header] : [];
}
