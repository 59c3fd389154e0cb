import type { HeaderField } from "../../core/base/header-field.js";
import { limitsOf, type OverLimit, type Rule } from "../../core/limits/limit.js";
import { fallbackHeader } from "../../core/limits/request-marks.js";
import type { ServicePolicy } from "./service-policy.js";

/**
 * Returns, for each service, the names of request headers that limits of its domain may set. Only
 * limits may say what is in them, so callers' own are removed.
 */
export function markingHeaders(
  rules: readonly Rule[],
): (service: Pick<ServicePolicy, "rateLimit">) => readonly string[] {
  const byDomain = new Map<string, Set<string>>();
  for (const rule of rules) {
    for (const { over, warn } of limitsOf(rule)) {
      if (over === undefined && warn === undefined) continue;
      const names = byDomain.get(rule.domain) ?? new Set();
      byDomain.set(rule.domain, names);
      for (const { name } of [...(warn?.headers ?? []), ...headersOf(over)]) names.add(name);
      if (over?.kind === "fallback" && over.to.kind === "cluster") names.add(fallbackHeader);
    }
  }
  return ({ rateLimit }) =>
    rateLimit?.inExtProc === true ? [...(byDomain.get(rateLimit.domain) ?? [])] : [];
}

function headersOf(over: OverLimit | undefined): readonly HeaderField[] {
  if (over?.kind === "annotate") return over.headers;
  return over?.kind === "fallback" && over.to.kind === "header" ? [over.to.header] : [];
}
