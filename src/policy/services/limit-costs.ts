import { denialOf, type Limit, limitsOf, type Rule } from "../../core/limits/limit.js";
import { quoteText } from "../problems/problem.js";
import { mayMeet } from "./limit-paths.js";
import type { DescriptorHits, RateLimitClaim } from "./service-rate-limit.js";

const oneHit: DescriptorHits = { kind: "fixed", count: 1 };

type ClaimedDescriptor = RateLimitClaim["descriptors"][number];

/** Returns the typical cost of a request by an Envoy format, in hits; undefined if unknown. */
function typicalCost(format: string): number | undefined {
  // A small JSON body, or a short prompt.
  if (/BYTES|TOKEN/i.test(format)) return 1_000;
  return format.startsWith("%DURATION") ? 100 : undefined;
}

/**
 * Warns of descriptors whose cost is above what a limit can hold at once. GCRA refuses such a
 * charge regardless of earlier use, and does not store such a charge after the response.
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

/** A limit of 0 hits denies everything on purpose. */
function isTooTight({ hits, burst, role }: Limit, cost: number): boolean {
  return hits > 0 && burst < cost && denialOf(role) !== "shadow";
}

/** Returns the rules that requests may match; a rule that names a fixed value takes precedence. */
function metRules({ parts }: ClaimedDescriptor, rules: readonly Rule[]): readonly Rule[] {
  let met = rules.filter(({ path }) => mayMeet(path, parts));
  parts.forEach((part, i) => {
    if (!("value" in part)) return;
    const exact = met.filter(({ path }) => path[i]?.value === part.value);
    if (exact.length > 0) met = exact;
  });
  return met;
}
