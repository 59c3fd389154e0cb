import { clusterNames } from "../../policy/services/service-clusters.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import { objectName } from "../base/custom-object.js";
import type { GeneratedPolicy, GenerateOptions } from "../base/generator.js";
import { ruleCluster } from "../gateway/gateway-names.js";
import type { AlertRule } from "./alert.js";
import { counterTrial, gaugeTrial, steady } from "./alert-trials.js";
import type { AlertName } from "./alert-words.js";
import { by, clustersNamed, grows, series, withEnvoyLabel } from "./promql.js";

const ofCluster: readonly string[] = ["envoy_cluster_name"];

/** Returns alerts on Envoys' own statistics, which also work if no Headgate reports anything. */
export function envoyAlerts(
  { services, proxies }: GeneratedPolicy,
  { namespace }: Pick<GenerateOptions, "namespace">,
): readonly AlertRule<AlertName>[] {
  if (services.length === 0) return [];
  const asksLimits = services.some(({ rateLimit }) => rateLimit?.inExtProc === false);
  const admits = services.some(({ admission }) => admission !== undefined);
  const ejects = services.some(({ outlierDetection }) => outlierDetection !== undefined);
  const clusters = services
    .flatMap((service) => watchedClusters(service, namespace))
    // These may lead to any service on that port, and have no hosts before the first request.
    .filter((cluster) => !cluster.startsWith("inbound|"));
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
  expr:
    `${by("sum", ofCluster)} ` +
    `(${withEnvoyLabel(`rate(${limitErrors}[5m])`, "envoy_cluster_name")}) > 0.1`,
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
  expr: `${by("max", ofCluster)} (${withEnvoyLabel(highOpen, "envoy_cluster_name")}) == 1`,
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
  expr: `${by("max", ofCluster)} (${withEnvoyLabel(ejected, "envoy_cluster_name")}) > 0`,
  forMinutes: 10,
  trial: gaugeTrial(
    ejected,
    { raising: 1, quiet: 0 },
    { series: { envoy_cluster_name: "orders" } },
  ),
};

/**
 * Returns the names of a service's cluster in our Envoys, Istio's and Envoy Gateway's. The last is
 * the cluster of an HTTPRoute's first rule, and `clustersNamed` matches all rules.
 */
export function watchedClusters(service: ServicePolicy, namespace: string): readonly string[] {
  const { name, namespace: own = namespace } = service;
  const route = { name: objectName(name), namespace: own };
  const names = [...clusterNames(service), ruleCluster(service, route)];
  return [...new Set(names)];
}

/** Only for the policy's services. Other clusters of an Envoy are their owners' concern. */
function hostsAlert(clusters: readonly string[]): AlertRule<AlertName> {
  const metric = "envoy_cluster_membership_healthy";
  const [cluster = ""] = clusters;
  const healthy = withEnvoyLabel(series(metric, clustersNamed(clusters)), "envoy_cluster_name");
  const inMesh = { cluster_name: clusters.find((name) => name.startsWith("outbound|")) ?? cluster };
  return {
    alert: "EnvoyNoHealthyHosts",
    expr: `${by("min", ofCluster)} (${healthy}) == 0`,
    forMinutes: 1,
    trial: {
      raising: [
        steady(metric, inMesh, 0),
        steady(metric, { envoy_cluster_name: `${cluster}-of-others` }, 0),
      ],
      labels: { job: "headgate", envoy_cluster_name: inMesh.cluster_name },
      quiet: [steady(metric, inMesh, 1), steady(metric, { envoy_cluster_name: cluster }, 1)],
    },
  };
}

const stopped = "envoy_overload_envoy_overload_actions_stop_accepting_requests_active";

const overloadAlert: AlertRule<AlertName> = {
  alert: "EnvoyOverloaded",
  expr: `${by("max", ["instance"])} (${stopped}) == 1`,
  forMinutes: 1,
  trial: gaugeTrial(stopped, { raising: 1, quiet: 0 }, { alert: { instance: "a" } }),
};
