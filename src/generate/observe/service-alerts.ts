import { isLearning } from "../../core/concurrency/concurrency-laws.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import type { GeneratedPolicy } from "../base/generator.js";
import { isWatched } from "../envoy/http/telemetry.js";
import type { AlertRule } from "./alert.js";
import { counterTrial, gaugeTrial, growing } from "./alert-trials.js";
import type { AlertName } from "./alert-words.js";
import { by, grows, literalPattern, quoted, series } from "./promql.js";

const decisions = "headgate_admission_decisions_total";
const ofService: readonly string[] = ["service"];

/** Returns alerts on admission to services and on their limits. */
export function serviceAlerts({ services }: GeneratedPolicy): readonly AlertRule<AlertName>[] {
  const admitting = services.filter(({ admission }) => admission !== undefined);
  const has = (test: (service: ServicePolicy) => boolean): boolean => admitting.some(test);
  return [
    ...(admitting.length === 0 ? [] : refusalAlerts),
    ...(has(({ admission }) => admission?.gate !== undefined) ? [gateAlert] : []),
    ...(has(({ admission }) => admission?.queue !== undefined) ? [queueAlert] : []),
    ...(has(({ rateLimit }) => rateLimit?.inExtProc === true) ? [skippedAlert] : []),
    ...services.filter(isWatched).flatMap(floorAlert),
    ...services.flatMap(lagAlerts),
    ...(services.some(({ concurrency }) => concurrency?.signal !== undefined)
      ? [missingAlert]
      : []),
  ];
}

const refusedCritical = {
  service: "orders",
  priority: "critical",
  decision: "refused",
  cause: "concurrency",
  dry_run: "false",
};

const refusalAlerts: readonly AlertRule<AlertName>[] = [
  {
    alert: "HeadgateCriticalRefused",
    expr: `${grows(
      series(decisions, { priority: "critical", decision: "refused", dry_run: "false" }),
      ["service", "cause"],
    )} > 0`,
    forMinutes: 1,
    trial: {
      raising: [growing(decisions, refusedCritical, 60)],
      labels: { job: "headgate", service: "orders", cause: "concurrency" },
      quiet: [
        growing(decisions, { ...refusedCritical, priority: "low" }, 60),
        growing(decisions, { ...refusedCritical, dry_run: "true" }, 60),
      ],
    },
  },
  {
    alert: "HeadgateRefusesMuch",
    expr:
      `${grows(series(decisions, { decision: "refused", dry_run: "false" }), ofService)} > ` +
      `0.1 * ${grows(series(decisions, { dry_run: "false" }), ofService)}`,
    forMinutes: 10,
    trial: {
      raising: [growing(decisions, { ...refusedCritical, priority: "low" }, 60)],
      labels: { job: "headgate", service: "orders" },
      quiet: [
        growing(decisions, { ...refusedCritical, priority: "low" }, 6),
        growing(decisions, { ...refusedCritical, decision: "admitted", cause: "" }, 600),
      ],
    },
  },
  {
    alert: "HeadgateServiceUnknown",
    expr: `${grows("headgate_admission_unknown_service_requests_total")} > 0`,
    forMinutes: 10,
    trial: counterTrial("headgate_admission_unknown_service_requests_total"),
  },
  {
    alert: "HeadgateStreamsFault",
    expr: `${grows("headgate_exchange_faults_total", ["fault"])} > 0`,
    forMinutes: 5,
    trial: counterTrial("headgate_exchange_faults_total", { series: { fault: "out_of_order" } }),
  },
];

const gateState = "headgate_admission_gate_state";

const gateAlert: AlertRule<AlertName> = {
  alert: "HeadgateGateClosed",
  expr: `${by("max", ofService)} (${series(gateState, { state: "closed" })}) == 1`,
  forMinutes: 2,
  trial: gaugeTrial(
    gateState,
    { raising: 1, quiet: 0 },
    { series: { service: "orders", state: "closed" }, alert: { service: "orders" } },
  ),
};

const waits = "headgate_admission_wait_seconds";
const trialWaits = { service: "orders" };

/** The alert of the linearizer's article: fewer than 95 % are admitted within 100 ms. */
const queueAlert: AlertRule<AlertName> = {
  alert: "HeadgateQueueWaits",
  expr:
    `${grows(series(`${waits}_bucket`, { le: "0.1" }), ofService)} / ` +
    `${grows(`${waits}_count`, ofService)} < 0.95`,
  forMinutes: 5,
  trial: {
    raising: [
      growing(`${waits}_bucket`, { ...trialWaits, le: "0.1" }, 80),
      growing(`${waits}_count`, trialWaits, 100),
    ],
    labels: { job: "headgate", service: "orders" },
    quiet: [
      growing(`${waits}_bucket`, { ...trialWaits, le: "0.1" }, 99),
      growing(`${waits}_count`, trialWaits, 100),
    ],
  },
};

const skipped = "headgate_admission_rate_limit_failures_total";

const skippedAlert: AlertRule<AlertName> = {
  alert: "HeadgateRateLimitSkipped",
  expr: `${grows(skipped, ofService)} > 0`,
  forMinutes: 1,
  trial: counterTrial(skipped, { series: { service: "orders" } }),
};

const missingAlert: AlertRule<AlertName> = {
  alert: "HeadgateSignalMissing",
  expr: `${by("max", ofService)} (headgate_signal_missing) == 1`,
  forMinutes: 1,
  trial: gaugeTrial(
    "headgate_signal_missing",
    { raising: 1, quiet: 0 },
    { series: { service: "orders" } },
  ),
};

/** Returns an alert for an algorithm whose limit has reached its minimum. */
function floorAlert({
  name: service,
  concurrency,
}: ServicePolicy): readonly AlertRule<AlertName>[] {
  if (concurrency === undefined || !isLearning(concurrency.settings.law)) return [];
  const { limits } = concurrency.settings;
  if (limits.min >= limits.max) return [];
  const metric = "headgate_fleet_limit";
  return [
    {
      alert: "HeadgateLimitAtFloor",
      expr: `${by("max", ofService)} (${series(metric, { service })}) <= ${limits.min}`,
      forMinutes: 10,
      labels: { service },
      trial: gaugeTrial(
        metric,
        { raising: limits.min, quiet: limits.max },
        { series: { service } },
      ),
    },
  ];
}

/** Returns a rule of a service for its own threshold and those of its keys. */
function lagAlerts({ name: service, concurrency }: ServicePolicy): readonly AlertRule<AlertName>[] {
  const settings = concurrency?.settings;
  const signal = concurrency?.signal;
  if (settings?.law !== "signal" || signal === undefined) return [];
  const { thresholds } = signal;
  const metric = "headgate_signal_reading";
  const past = (matchers: string, critical: number): string =>
    `${by("max", ["service", "key"])} (${metric}{service=${quoted(service)}${matchers}}) >= ` +
    String(critical);
  const named = thresholds.map(({ name }) => literalPattern(name)).join("|");
  const others = past(named === "" ? "" : `,key!~${quoted(named)}`, settings.critical);
  const own = thresholds.map(({ name, critical }) => past(`,key=${quoted(name)}`, critical));
  const { name: key, target, critical } = thresholds[0] ?? { ...settings, name: "other" };
  return [
    {
      alert: "HeadgateLagCritical",
      expr: [others, ...own].join(" or "),
      forMinutes: 2,
      labels: { service },
      trial: gaugeTrial(metric, { raising: critical, quiet: target }, { series: { service, key } }),
    },
  ];
}
