import type { FailureMode } from "../../core/limits/limit.js";
import type { GeneratedPolicy } from "../base/generator.js";
import type { AlertRule } from "./alert.js";
import { counterTrial, gaugeTrial, growing, steady } from "./alert-trials.js";
import type { AlertName } from "./alert-words.js";
import { hasGlobalLimits } from "./fleet-dashboard.js";
import { by, grows } from "./promql.js";

/** Returns alerts for any Headgate, whatever it decides. */
export function processAlerts(
  policy: GeneratedPolicy,
  { replicas }: { readonly replicas: number },
): readonly AlertRule<AlertName>[] {
  return [
    ...presence(replicas),
    ...storeAlerts(policy),
    ...(hasGlobalLimits(policy) ? regionAlerts : []),
    ...loadAlerts(policy),
    ...policyAlerts,
    ...certificateAlerts,
    ...peerAlerts,
  ];
}

function presence(replicas: number): readonly AlertRule<AlertName>[] {
  const info = "headgate_build_info";
  const absent: AlertRule<AlertName> = {
    alert: "HeadgateAbsent",
    expr: `absent(${info})`,
    forMinutes: 2,
    trial: {
      raising: [steady("up", {}, 0)],
      labels: {},
      quiet: [steady(info, { version: "1.0.0" }, 1)],
    },
  };
  if (replicas < 2) return [absent];
  const several = Array.from({ length: replicas }, (_, index) =>
    steady(info, { version: "1.0.0", pod: `headgate-${index}` }, 1),
  );
  return [
    absent,
    {
      alert: "HeadgateReplicasMissing",
      expr: `${by("count")} (${info}) < ${replicas}`,
      forMinutes: 10,
      trial: { raising: several.slice(1), labels: { job: "headgate" }, quiet: several },
    },
  ];
}

/** The alert for each failure mode. With `error`, Envoy decides. */
const modeAlerts: readonly (readonly [FailureMode, AlertName])[] = [
  ["allow", "HeadgateFailOpen"],
  ["deny", "HeadgateFailClosed"],
  ["local", "HeadgateCountingAlone"],
];

function storeAlerts({ rules }: GeneratedPolicy): readonly AlertRule<AlertName>[] {
  const modes = new Set(
    rules.flatMap(({ effect }) =>
      effect.kind === "limited" ? effect.limits.map(({ onStoreFailure }) => onStoreFailure) : [],
    ),
  );
  const circuit = "headgate_store_circuit_open";
  const failures = "headgate_store_failures_total";
  const fallback = "headgate_fallback_decisions_total";
  const error = { error: "STORE_TIMEOUT" };
  return [
    {
      alert: "HeadgateStoreAway",
      expr: `${by("max")} (${circuit}) == 1`,
      forMinutes: 1,
      trial: gaugeTrial(
        circuit,
        { raising: 1, quiet: 0 },
        { series: { store: "redis" }, alert: {} },
      ),
    },
    {
      alert: "HeadgateStoreFailing",
      expr: `${grows(failures, ["error"])} > 0.1`,
      forMinutes: 5,
      trial: counterTrial(failures, { series: error }),
    },
    ...modeAlerts
      .filter(([mode]) => modes.has(mode))
      .map(
        ([mode, alert]): AlertRule<AlertName> => ({
          alert,
          expr: `${grows(`${fallback}{mode="${mode}"}`)} > 0`,
          forMinutes: 1,
          trial: counterTrial(fallback, { series: { mode, ...error }, alert: {} }),
        }),
      ),
  ];
}

const reachable = "headgate_region_reachable";

const regionAlerts: readonly AlertRule<AlertName>[] = [
  {
    alert: "HeadgateRegionUnreachable",
    expr: `${by("max", ["peer"])} (${reachable}) == 0`,
    forMinutes: 5,
    trial: gaugeTrial(reachable, { raising: 0, quiet: 1 }, { series: { peer: "us" } }),
  },
];

function loadAlerts({ proxies }: GeneratedPolicy): readonly AlertRule<AlertName>[] {
  const lag = "nodejs_eventloop_lag_p99_seconds";
  const bucket = "headgate_decision_duration_seconds_bucket";
  const failed = "headgate_failed_requests_total";
  const answered = "headgate_requests_total";
  const tooLongSeconds = proxies.headgate.rateLimitTimeoutMs / 2_000;
  const fast = growing(bucket, { le: "0.0005" }, 100);
  const all = growing(bucket, { le: "+Inf" }, 100);
  const slow = growing(bucket, { le: "0.0005" }, 1);
  return [
    {
      alert: "HeadgateOverloaded",
      expr: `${by("max", ["cause"])} (headgate_overloaded) == 1`,
      forMinutes: 1,
      trial: gaugeTrial(
        "headgate_overloaded",
        { raising: 1, quiet: 0 },
        { series: { cause: "loop_delay" } },
      ),
    },
    {
      alert: "HeadgateEventLoopLate",
      expr:
        `${by("max", ["instance"])} ` +
        `(${lag} and on (namespace, job, instance) headgate_build_info) > 0.05`,
      forMinutes: 10,
      trial: {
        raising: [steady(lag, {}, 0.2), steady("headgate_build_info", { version: "1.0.0" }, 1)],
        labels: { job: "headgate", instance: "a" },
        quiet: [steady(lag, {}, 0.011), steady("headgate_build_info", { version: "1.0.0" }, 1)],
      },
    },
    {
      alert: "HeadgateDecisionsSlow",
      expr: `histogram_quantile(0.99, ${grows(bucket, ["le"])}) > ${tooLongSeconds}`,
      forMinutes: 10,
      trial: {
        raising: [slow, growing(bucket, { le: String(4 * tooLongSeconds) }, 100), all],
        labels: { job: "headgate" },
        quiet: [fast, all],
      },
    },
    {
      alert: "HeadgateBug",
      expr: `${by("sum")} (increase(headgate_internal_errors_total[10m])) > 0`,
      forMinutes: 0,
      trial: counterTrial("headgate_internal_errors_total"),
    },
    {
      alert: "HeadgateRequestsFail",
      expr: `${grows(failed)} > 0.01 * ${grows(answered)}`,
      forMinutes: 5,
      trial: {
        raising: [
          growing(failed, { error: "STORE_TIMEOUT" }, 60),
          growing(answered, { code: "ok" }, 600),
        ],
        labels: { job: "headgate" },
        quiet: [
          growing(failed, { error: "STORE_TIMEOUT" }, 1),
          growing(answered, { code: "ok" }, 600),
        ],
      },
    },
  ];
}

const policyAlerts: readonly AlertRule<AlertName>[] = [
  {
    alert: "HeadgatePolicyRefused",
    expr: `${by("max")} (headgate_policy_stale) == 1`,
    forMinutes: 1,
    trial: gaugeTrial("headgate_policy_stale", { raising: 1, quiet: 0 }),
  },
  {
    alert: "HeadgatePoliciesDiffer",
    expr: `${by("count")} (${by("count", ["version"])} (headgate_policy_info)) > 1`,
    forMinutes: 5,
    trial: {
      raising: ["old", "new"].map((version) => steady("headgate_policy_info", { version }, 1)),
      labels: { job: "headgate" },
      quiet: [steady("headgate_policy_info", { version: "new" }, 1)],
    },
  },
  {
    alert: "HeadgateControlPlaneAway",
    expr: `${by("min")} (headgate_xds_connected) == 0`,
    forMinutes: 5,
    trial: gaugeTrial("headgate_xds_connected", { raising: 0, quiet: 1 }),
  },
];

const expiry = "headgate_tls_certificate_expiry_timestamp_seconds";
const daySeconds = 86_400;

const certificateAlerts: readonly AlertRule<AlertName>[] = [
  {
    alert: "HeadgateCertificateExpires",
    expr: `${by("min")} (${expiry}) - time() < ${7 * daySeconds}`,
    forMinutes: 10,
    trial: gaugeTrial(expiry, { raising: 5 * daySeconds, quiet: 30 * daySeconds }),
  },
  {
    alert: "HeadgateCertificateExpired",
    expr: `${by("min")} (${expiry}) - time() < ${daySeconds}`,
    forMinutes: 0,
    trial: gaugeTrial(expiry, { raising: daySeconds / 2, quiet: 30 * daySeconds }),
  },
  {
    alert: "HeadgateCertificateRefused",
    expr: `${by("max")} (headgate_tls_certificate_stale) == 1`,
    forMinutes: 1,
    trial: gaugeTrial("headgate_tls_certificate_stale", { raising: 1, quiet: 0 }),
  },
];

const tooMany = "headgate_refused_connections_total";
const refusedClients = "headgate_tls_refused_connections_total";
const failedStreams = "headgate_control_failed_streams_total";

/** Without a problem, only port checks produce these two causes. */
const everydayCauses = 'cause!~"connectionLost|handshakeTimeout"';

const nameCauses = 'cause=~"owned_by_another|identity_not_allowed"';

/** Refused clients: unknown ones, or our own with a wrong limit, certificate or name. */
const peerAlerts: readonly AlertRule<AlertName>[] = [
  {
    alert: "HeadgateConnectionsRefused",
    expr: `${grows(tooMany, ["port"])} > 0.1`,
    forMinutes: 5,
    trial: counterTrial(tooMany, { series: { port: "grpc" } }),
  },
  {
    alert: "HeadgateClientsRefused",
    expr: `${grows(`${refusedClients}{${everydayCauses}}`, ["cause"])} > 0.1`,
    forMinutes: 10,
    trial: {
      ...counterTrial(refusedClients, { series: { cause: "noClientCertificate" } }),
      quiet: [growing(refusedClients, { cause: "connectionLost" }, 60)],
    },
  },
  {
    alert: "HeadgateNamesRefused",
    expr: `${grows(`${failedStreams}{${nameCauses}}`, ["cause"])} > 0.01`,
    forMinutes: 5,
    trial: {
      ...counterTrial(failedStreams, { series: { cause: "owned_by_another" } }),
      quiet: [growing(failedStreams, { cause: "too_many_nodes" }, 60)],
    },
  },
];
