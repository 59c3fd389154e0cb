import type { GeneratedPolicy } from "../generator.js";
import type { AlertRule } from "./alert.js";
import { by, grows } from "./alert-queries.js";
import { counterTrial, gaugeTrial } from "./alert-trials.js";
import type { AlertName } from "./alert-words.js";
import { series } from "./promql.js";

const ofCluster: readonly string[] = ["envoy_cluster_name"];

/** What Envoys' own statistics tell: also where no Headgate is left to tell anything. */
export function envoyAlerts({
  services,
  proxies,
}: GeneratedPolicy): readonly AlertRule<AlertName>[] {
  if (services.length === 0) return [];
  const asksLimits = services.some(({ rateLimit }) => rateLimit?.inExtProc === false);
  const admits = services.some(({ admission }) => admission !== undefined);
  const ejects = services.some(({ outlierDetection }) => outlierDetection !== undefined);
  const clusters = services.map(({ name }) => name);
  return [
    ...(asksLimits ? [rateLimitAlert] : []),
    ...(admits ? [admissionAlert] : []),
    breakerAlert,
    ...(ejects ? [ejectedAlert] : []),
    hostsAlert(clusters),
    ...(proxies.overload?.heap === undefined ? [] : [overloadAlert]),
  ];
}

const limitErrors = "envoy_cluster_ratelimit_headgate_error";

const rateLimitAlert: AlertRule<AlertName> = {
  alert: "EnvoyRateLimitFails",
  expr: `${grows(limitErrors, ofCluster)} > 0.1`,
  forMinutes: 2,
  trial: counterTrial(limitErrors, { series: { envoy_cluster_name: "orders" } }),
};

const passed = "envoy_http_ext_proc_headgate_failure_mode_allowed";

const admissionAlert: AlertRule<AlertName> = {
  alert: "EnvoyAdmissionFails",
  expr: `${grows(passed)} > 0.1`,
  forMinutes: 2,
  trial: counterTrial(passed, {
    series: { envoy_http_conn_manager_prefix: "ingress" },
    alert: {},
  }),
};

const highOpen = "envoy_cluster_circuit_breakers_high_rq_open";

const breakerAlert: AlertRule<AlertName> = {
  alert: "EnvoyCriticalOverflow",
  expr: `${by("max", ofCluster)} (${highOpen}) == 1`,
  forMinutes: 1,
  trial: gaugeTrial(
    highOpen,
    { raising: 1, quiet: 0 },
    { series: { envoy_cluster_name: "orders" } },
  ),
};

const ejected = "envoy_cluster_outlier_detection_ejections_active";

const ejectedAlert: AlertRule<AlertName> = {
  alert: "EnvoyHostsEjected",
  expr: `${by("max", ofCluster)} (${ejected}) > 0`,
  forMinutes: 10,
  trial: gaugeTrial(
    ejected,
    { raising: 1, quiet: 0 },
    { series: { envoy_cluster_name: "orders" } },
  ),
};

/** Of the policy's services: an Envoy has other clusters, and theirs are their owners'. */
function hostsAlert(clusters: readonly string[]): AlertRule<AlertName> {
  const metric = "envoy_cluster_membership_healthy";
  const [cluster = ""] = clusters;
  return {
    alert: "EnvoyNoHealthyHosts",
    expr: `${by("min", ofCluster)} (${series(metric, { envoy_cluster_name: clusters })}) == 0`,
    forMinutes: 1,
    trial: gaugeTrial(
      metric,
      { raising: 0, quiet: 1 },
      { series: { envoy_cluster_name: cluster } },
    ),
  };
}

const stopped = "envoy_overload_envoy_overload_actions_stop_accepting_requests_active";

const overloadAlert: AlertRule<AlertName> = {
  alert: "EnvoyOverloaded",
  expr: `${by("max", ["instance"])} (${stopped}) == 1`,
  forMinutes: 1,
  trial: gaugeTrial(stopped, { raising: 1, quiet: 0 }, { alert: { instance: "a" } }),
};
