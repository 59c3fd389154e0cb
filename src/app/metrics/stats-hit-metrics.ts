import type { DecisionCounters, HitCounters } from "../../decide/rate-limit/counters.js";
import type { PolicySource } from "../../decide/rate-limit/policy-source.js";
import type { Labels, ReadMetric } from "../base/metrics.js";
import { statText } from "../options/stats-names.js";
import { hasHits } from "./stats.js";

/** Maximum length of a label with callers' values, in UTF-16 code units. The rest is cut off. */
export const detailedLabelLengthMax = 256;

interface HitMetricsParts {
  readonly counters: DecisionCounters;
  readonly policies: PolicySource;
}

type Add = (value: number, labels?: Labels) => void;

/**
 * Returns hits by rule, and by callers' values if a rule asks for it. Outcomes exclude each other:
 * without the refunds, they add up to all requested hits.
 */
export function hitMetrics(parts: HitMetricsParts): readonly ReadMetric[] {
  return [
    {
      name: "headgate_hits_total",
      help: "Hits requested, by rule and outcome; a series starts with its first hit.",
      labelNames: ["domain", "rule", "outcome"],
      read: (add) => {
        for (const { domain, label: rule, hits } of countedRules(parts)) {
          addOutcomes(hits, { domain, rule }, add);
        }
      },
    },
    {
      name: "headgate_near_limit_hits_total",
      help: "Hits within a limit, but above NEAR_LIMIT_RATIO of it.",
      labelNames: ["domain", "rule"],
      read: (add) => {
        for (const { domain, label: rule, hits } of countedRules(parts)) {
          if (hits.near > 0) add(hits.near, { domain, rule });
        }
      },
    },
    {
      name: "headgate_over_limit_cache_hits_total",
      help: "Hits over a limit, denied without a store call.",
      labelNames: ["domain", "rule"],
      read: (add) => {
        for (const { domain, label: rule, hits } of countedRules(parts)) {
          if (hits.overFromMemory > 0) add(hits.overFromMemory, { domain, rule });
        }
      },
    },
    {
      name: "headgate_detailed_hits_total",
      help:
        "Hits of rules with detailed_metric or value_to_metric, instead of " +
        "headgate_hits_total. `path` contains callers' values: at most 1,000 paths " +
        "of 256 characters.",
      labelNames: ["domain", "rule", "path", "outcome"],
      read: (add) => {
        for (const { rule, label, hits } of parts.counters.detailed) {
          const path = clip(statText(label));
          addOutcomes(hits, { domain: rule.domain, rule: rule.label, path }, add);
        }
      },
    },
  ];
}

function* countedRules({ counters, policies }: HitMetricsParts) {
  const policy = policies.current();
  if (policy === undefined) return;
  for (const rule of counters.forPolicy(policy)) if (hasHits(rule.hits)) yield rule;
}

function addOutcomes(hits: HitCounters, labels: Labels, add: Add): void {
  const { within, over, shadow, refunded } = hits;
  if (within > 0) add(within, { ...labels, outcome: "within" });
  if (over > shadow) add(over - shadow, { ...labels, outcome: "over" });
  if (shadow > 0) add(shadow, { ...labels, outcome: "shadow_over" });
  if (refunded > 0) add(refunded, { ...labels, outcome: "refunded" });
}

/** Cuts off a long label, but not in the middle of a character: half a pair is no text. */
function clip(text: string): string {
  return text.slice(0, detailedLabelLengthMax).replace(/[\uD800-\uDBFF]$/, "");
}
