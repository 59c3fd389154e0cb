import { visibleText } from "../../policy/problems/problem.js";
import type { QuotaPolicy } from "../../policy/quotas/quota-policy.js";
import { renderSection } from "./policy-section.js";

/** What a policy says of a quota, in words: for people, and by the same names for machines. */
interface QuotaSummary {
  readonly name: string;
  readonly domain: string;
  /** The keys of a bucket, and the header that tells a class. */
  readonly bucket: string;
  /** Whose requests. */
  readonly services: string;
  /** What Envoys do before they are told, and after. */
  readonly beforeAssignment: string;
  readonly afterExpiry: string;
}

/** Sums up each quota. */
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

/** The quotas as a table; empty where there are none. */
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
