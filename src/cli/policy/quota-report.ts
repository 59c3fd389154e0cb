import { visibleText } from "../../policy/problems/problem.js";
import type { QuotaPolicy } from "../../policy/quotas/quota-policy.js";
import { renderSection } from "./policy-section.js";

/** Summary of a quota in a policy, in words. The same names are used in JSON. */
interface QuotaSummary {
  readonly name: string;
  readonly domain: string;
  /** Keys of a bucket, and the header that contains a class. */
  readonly bucket: string;
  /** Services whose requests count. */
  readonly services: string;
  /** Behavior of Envoys before their first assignment, and after an assignment expires. */
  readonly beforeAssignment: string;
  readonly afterExpiry: string;
}

/** Summarizes each quota. */
export function summarizeQuotas(quotas: readonly QuotaPolicy[]): readonly QuotaSummary[] {
  return quotas.map((quota) => {
    const { name, domain, bucket, classes, services, beforeAssignment, afterExpiry } = quota;
    const keys = bucket.map(({ key }) => key).join(",");
    const { fallback } = afterExpiry;
    return {
      name: visibleText(name),
      domain: visibleText(domain),
      bucket: visibleText(classes === undefined ? keys : `${keys} by ${classes.header}`),
      services: services === undefined ? "all" : visibleText(services.join(",")),
      beforeAssignment,
      afterExpiry: fallback.kind === "blanket" ? fallback.rule : "limit",
    };
  });
}

/** Returns the quotas as a table; empty if there are none. */
export function renderQuotas(quotas: readonly QuotaPolicy[]): string {
  return renderSection("Quotas", summarizeQuotas(quotas), {
    quota: "name",
    domain: "domain",
    bucket: "bucket",
    services: "services",
    before: "beforeAssignment",
    after: "afterExpiry",
  });
}
