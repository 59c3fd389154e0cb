import { denialOf, limitsOf } from "../../core/limits/limit.js";
import { metadata } from "../base/custom-object.js";
import type { Document, Tree, TreeMap } from "../base/document.js";
import type {
  Generated,
  GeneratedPolicy,
  GenerateOptions,
  GenerateProblem,
} from "../base/generator.js";
import { type AlertRule, type AlertWords, severities, type TrialSeries } from "./alert.js";
import { counterTrial, gaugeTrial, growing, trialMinutes } from "./alert-trials.js";
import { type AlertName, alertWords } from "./alert-words.js";
import { budgetAlerts } from "./budget-alerts.js";
import { envoyAlerts } from "./envoy-alerts.js";
import { type InhibitRule, inhibitRules } from "./inhibit-rules.js";
import { loopAlerts } from "./loop-alerts.js";
import { processAlerts } from "./process-alerts.js";
import { by, grows } from "./promql.js";
import { roomAlerts } from "./room-alerts.js";
import { alertUrl, renderRunbook } from "./runbook.js";
import { serviceAlerts } from "./service-alerts.js";

/** Name of the runbook file next to the rules. */
const runbookFile = "runbook.md";

/** Generates Prometheus rules, the same as a PrometheusRule object, their tests, and a runbook. */
export function generateAlerts(policy: GeneratedPolicy, options: GenerateOptions): Generated {
  const rules = alertRules(policy, options);
  const groups = groupsOf(rules, options);
  const names = [...new Set(rules.map(({ alert }) => alert))];
  const inhibited = inhibitRules(names);
  const documents: readonly Document[] = [
    {
      path: rulesFile,
      kind: { format: "yaml", is: "rules" },
      title: "Prometheus rules. List this file in `rule_files`.",
      parts: [{ groups }],
    },
    {
      path: "prometheusrule.yaml",
      kind: { format: "yaml", is: "kubernetes" },
      title: "The same rules, for the Prometheus operator.",
      parts: [
        {
          apiVersion: "monitoring.coreos.com/v1",
          kind: "PrometheusRule",
          metadata: metadata({ name: "headgate", namespace: options.namespace }),
          spec: { groups },
        },
      ],
    },
    {
      path: "tests/headgate.yaml",
      kind: { format: "yaml", is: "rules" },
      title:
        "Tests of each rule: promtool test rules tests/headgate.yaml\nDo not list " +
        "this file in `rule_files`.",
      parts: [trialsOf(rules, options)],
    },
    ...(inhibited.length === 0 ? [] : [inhibitDocument(inhibited)]),
    {
      path: runbookFile,
      kind: { format: "text" },
      title: "",
      parts: [renderRunbook(names)],
    },
  ];
  return { documents, problems: options.runbookUrl === undefined ? [withoutRunbookUrl] : [] };
}

/** At night, a link that a pager cannot open is of no use. */
const withoutRunbookUrl: GenerateProblem = {
  id: "HG380",
  spot: { service: undefined, path: ["proxies", "runbookUrl"] },
  message: "alerts link to a file that on-call cannot open",
  hint:
    "runbookUrl: https://wiki.example.com/headgate, or --runbook-url, with the place " +
    "where you publish runbook.md",
  severity: "warning",
};

function inhibitDocument(inhibited: readonly InhibitRule[]): Document {
  return {
    path: "alertmanager.yaml",
    kind: { format: "yaml", is: "rules" },
    title: "One page for one cause: add these to the `inhibit_rules` of Alertmanager.",
    parts: [{ inhibit_rules: inhibited.map((rule) => ({ ...rule })) }],
  };
}

const rulesFile = "rules/headgate.yaml";

/** Returns every rule that the policy requires. */
export function alertRules(
  policy: GeneratedPolicy,
  options: Pick<GenerateOptions, "replicas" | "namespace">,
): readonly AlertRule<AlertName>[] {
  return [
    ...processAlerts(policy, options),
    ...limitAlerts(policy),
    ...(policy.quotas.length === 0 ? [] : quotaRules),
    ...serviceAlerts(policy),
    ...roomAlerts(policy),
    ...budgetAlerts(policy),
    ...loopAlerts(policy),
    ...envoyAlerts(policy, options),
  ];
}

function groupsOf(
  rules: readonly AlertRule<AlertName>[],
  options: GenerateOptions,
): readonly TreeMap[] {
  return severities.flatMap((severity) => {
    const own = rules.filter(({ alert }) => alertWords[alert].severity === severity);
    if (own.length === 0) return [];
    return [{ name: `headgate-${severity}`, rules: own.map((rule) => renderRule(rule, options)) }];
  });
}

function renderRule(rule: AlertRule<AlertName>, options: GenerateOptions): TreeMap {
  const { alert, expr, forMinutes } = rule;
  return {
    alert,
    expr,
    for: forMinutes === 0 ? undefined : `${forMinutes}m`,
    labels: { severity: alertWords[alert].severity, ...rule.labels },
    annotations: annotationsOf(alert, options),
  };
}

/** Includes the runbook's instructions: on-call may not have the runbook at hand. */
function annotationsOf(
  alert: AlertName,
  { runbookUrl = runbookFile }: Pick<GenerateOptions, "runbookUrl">,
): Readonly<Record<string, string>> {
  const { summary, means, act }: AlertWords = alertWords[alert];
  return {
    summary,
    description: `${means} ${act}`,
    runbook_url: alertUrl(runbookUrl, alert),
  };
}

/** Returns the unit tests of the rules. Source: Prometheus, "Unit testing for rules". */
function trialsOf(rules: readonly AlertRule<AlertName>[], options: GenerateOptions): TreeMap {
  return {
    rule_files: [`../${rulesFile}`],
    // The trials only check their last minute, so a coarse interval gives the same result, sooner.
    evaluation_interval: "5m",
    tests: rules.flatMap((rule) => trialOf(rule, options)),
  };
}

function trialOf(rule: AlertRule<AlertName>, options: GenerateOptions): readonly TreeMap[] {
  const { alert, trial } = rule;
  const { severity } = alertWords[alert];
  const annotations = Object.entries(annotationsOf(alert, options)).map(([name, text]) => {
    return [name, filledIn(text, trial.labels)] as const;
  });
  const raised: Tree = {
    exp_labels: { ...trial.labels, severity },
    exp_annotations: Object.fromEntries(annotations),
  };
  return [
    test({ name: `${alert} is raised`, alert, input: trial.raising, alerts: [raised] }),
    test({ name: `${alert} is not raised`, alert, input: trial.quiet, alerts: [] }),
  ];
}

function test(wanted: {
  readonly name: string;
  readonly alert: AlertName;
  readonly input: readonly TrialSeries[];
  readonly alerts: readonly Tree[];
}): TreeMap {
  const { name, alert, input, alerts } = wanted;
  return {
    name,
    interval: "1m",
    input_series: input.map(([series, values]) => ({ series, values })),
    alert_rule_test: [{ eval_time: `${trialMinutes}m`, alertname: alert, exp_alerts: alerts }],
  };
}

/** Fills labels into a text as Prometheus does. */
function filledIn(text: string, labels: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, (_, label: string) => labels[label] ?? "");
}

const leases = "headgate_quota_leases";
const ignored = "headgate_quota_ignored_reports_total";
const overflows = "headgate_quota_overflows_total";

const quotaRules: readonly AlertRule<AlertName>[] = [
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

const hits = "headgate_hits_total";
const near = "headgate_near_limit_hits_total";
const ofRule: readonly string[] = ["domain", "rule"];
const trialRule = { domain: "shop", rule: "user" };

/** Returns alerts on the limits of a policy. */
function limitAlerts({ rules }: GeneratedPolicy): readonly AlertRule<AlertName>[] {
  const limits = rules.flatMap(limitsOf);
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

/** True if more than a tenth of the hits are over the limit, for ten minutes. */
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
