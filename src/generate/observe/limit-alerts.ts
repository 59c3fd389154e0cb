import { denialOf } from "../../core/limits/limit.js";
import type { GeneratedPolicy } from "../base/generator.js";
import type { AlertRule } from "./alert.js";
import { counterTrial, growing } from "./alert-trials.js";
import type { AlertName } from "./alert-words.js";
import { grows } from "./promql.js";

const hits = "headgate_hits_total";
const near = "headgate_near_limit_hits_total";
const ofRule: readonly string[] = ["domain", "rule"];
const trialRule = { domain: "shop", rule: "user" };

/** What the limits of a policy can run into. */
export function limitAlerts({ rules }: GeneratedPolicy): readonly AlertRule<AlertName>[] {
  const limits = rules.flatMap(({ effect }) => (effect.kind === "limited" ? effect.limits : []));
  if (limits.length === 0) return [];
  const isTried = limits.some(({ role }) => denialOf(role) === "shadow");
  return [
    {
      alert: "HeadgateNearLimit",
      expr: `${grows(near, ofRule)} > 0.5 * ${grows(`${hits}{outcome="within"}`, ofRule)}`,
      forMinutes: 10,
      trial: {
        raising: [growing(near, trialRule, 60), growing(hits, within, 80)],
        labels: { job: "headgate", ...trialRule },
        quiet: [growing(near, trialRule, 10), growing(hits, within, 80)],
      },
    },
    overAlert("HeadgateOverLimit", "over"),
    ...(isTried ? [overAlert("HeadgateShadowOver", "shadow_over")] : []),
    {
      alert: "HeadgateKeysFlood",
      expr: `${grows("headgate_overflow_descriptors_total", ofRule)} > 0`,
      forMinutes: 5,
      trial: counterTrial("headgate_overflow_descriptors_total", { series: trialRule }),
    },
    {
      alert: "HeadgateDomainUnknown",
      expr: `${grows("headgate_unknown_domain_requests_total")} > 0`,
      forMinutes: 10,
      trial: counterTrial("headgate_unknown_domain_requests_total"),
    },
  ];
}

const within = { ...trialRule, outcome: "within" };

/** More than a tenth of what is asked, and not only for a moment. */
function overAlert(alert: AlertName, outcome: "over" | "shadow_over"): AlertRule<AlertName> {
  const over = grows(`${hits}{outcome="${outcome}"}`, ofRule);
  const asked = grows(`${hits}{outcome=~"within|over|shadow_over"}`, ofRule);
  const refused = { ...trialRule, outcome };
  return {
    alert,
    expr: `${over} > 0.1 * ${asked}`,
    forMinutes: 10,
    trial: {
      raising: [growing(hits, refused, 20), growing(hits, within, 80)],
      labels: { job: "headgate", ...trialRule },
      quiet: [growing(hits, refused, 2), growing(hits, within, 80)],
    },
  };
}
