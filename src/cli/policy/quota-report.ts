import { visibleText } from "../../policy/problems/problem.js";
import type { QuotaPolicy } from "../../policy/quotas/quota-policy.js";
import { drawTable } from "../terminal/text-table.js";

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

/** Quotas that the text shows; JSON shows all. */
const reportQuotasMax = 50;

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
  if (quotas.length === 0) return "";
  const titles = ["quota", "domain", "bucket", "services", "before", "after"];
  const rows = summarizeQuotas(quotas.slice(0, reportQuotasMax)).map(
    ({ name, domain, bucket, services, beforeAssignment, afterExpiry }) => {
      return [name, domain, bucket, services, beforeAssignment, afterExpiry];
    },
  );
  const table = drawTable(
    titles.map((title) => ({ title })),
    rows,
  );
  const moreCount = quotas.length - rows.length;
  const more = moreCount > 0 ? [`  and ${moreCount} more`] : [];
  return ["Quotas", ...table.map((line) => `  ${line}`), ...more].join("\n");
}
