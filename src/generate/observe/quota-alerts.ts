import type { GeneratedPolicy } from "../base/generator.js";
import type { AlertRule } from "./alert.js";
import { by, grows } from "./alert-queries.js";
import { counterTrial, gaugeTrial } from "./alert-trials.js";
import type { AlertName } from "./alert-words.js";

/** What can be wrong where Envoys decide by themselves. */
export function quotaAlerts({ quotas }: GeneratedPolicy): readonly AlertRule<AlertName>[] {
  return quotas.length === 0 ? [] : rules;
}

const leases = "headgate_quota_leases";
const ignored = "headgate_quota_ignored_reports_total";
const overflows = "headgate_quota_overflows_total";

const rules: readonly AlertRule<AlertName>[] = [
  {
    alert: "HeadgateQuotaLeasesLost",
    expr: `${by("sum")} (${leases}{state="lost"}) > 0`,
    forMinutes: 1,
    trial: gaugeTrial(leases, { raising: 2, quiet: 0 }, { series: { state: "lost" }, alert: {} }),
  },
  {
    alert: "HeadgateQuotaReportsIgnored",
    expr: `${grows(ignored, ["cause"])} > 0`,
    forMinutes: 5,
    trial: counterTrial(ignored, { series: { cause: "unknown_quota" } }),
  },
  {
    alert: "HeadgateQuotaBucketsFlood",
    expr: `${grows(overflows, ["bound"])} > 0`,
    forMinutes: 5,
    trial: counterTrial(overflows, { series: { bound: "stream" } }),
  },
];
