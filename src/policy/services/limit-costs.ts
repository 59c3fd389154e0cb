import { denialOf, type Limit, limitsOf, type Rule } from "../../core/limits/limit.js";
import { quoteText } from "../problems/problem.js";
import { mayMeet } from "./limit-paths.js";
import type { DescriptorHits, RateLimitClaim } from "./service-rate-limit.js";

const oneHit: DescriptorHits = { kind: "fixed", count: 1 };

type ClaimedDescriptor = RateLimitClaim["descriptors"][number];

/** What a typical request costs by a format of Envoy's, in hits; undefined: nobody knows. */
function typicalCost(format: string): number | undefined {
  // A small body of JSON, or a short prompt.
  if (/BYTES|TOKEN/i.test(format)) return 1_000;
  return format.startsWith("%DURATION") ? 100 : undefined;
}

/**
 * Warns of descriptors whose cost is above what a limit can hold at once. GCRA refuses such a
 * charge whatever was used before, and one after the response is not stored.
 *
 * @param rules of the claim's domain
 */
export function warnOfCosts({ reader, descriptors }: RateLimitClaim, rules: readonly Rule[]): void {
  for (const descriptor of descriptors) {
    const { hits = oneHit, isRefund = false, node } = descriptor;
    const cost = hits.kind === "fixed" ? hits.count : typicalCost(hits.format);
    if (cost === undefined || isRefund) continue;
    for (const rule of metRules(descriptor, rules)) {
      const tight = limitsOf(rule).find((limit) => isTooTight(limit, cost));
      if (tight === undefined) continue;
      const name = quoteText(tight.name ?? rule.label);
      const costs = hits.kind === "fixed" ? "costs" : "typically costs";
      reader.warn(node, {
        id: hits.kind === "fixed" ? "HG236" : "HG237",
        message:
          `a request ${costs} ${cost} hits, and the limit ${name} holds ` +
          `${tight.burst} at once`,
        expected: `burst: ${cost} or more at the limit, or fewer hits`,
      });
      break;
    }
  }
}

/** One that denies everything does so on purpose. */
function isTooTight({ hits, burst, role }: Limit, cost: number): boolean {
  return hits > 0 && burst < cost && denialOf(role) !== "shadow";
}

/** The rules that requests may meet; of a fixed value the rule that names it comes first. */
function metRules({ parts }: ClaimedDescriptor, rules: readonly Rule[]): readonly Rule[] {
  let met = rules.filter(({ path }) => mayMeet(path, parts));
  parts.forEach((part, i) => {
    if (!("value" in part)) return;
    const exact = met.filter(({ path }) => path[i]?.value === part.value);
    if (exact.length > 0) met = exact;
  });
  return met;
}
