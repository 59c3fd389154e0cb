import { httpStatuses } from "../../core/base/http-status.js";
import { quoteText } from "../../policy/problems/problem.js";
import {
  type EnvoyMessage,
  fieldAt,
  messageAt,
  messagesAt,
  numberField,
  textField,
  visitMessages,
} from "./envoy-message.js";
import type { Lint, LintScope } from "./lint.js";

/** Envoy's default threshold of requests. */
const defaultRequestsMax = 1_024;

/** Lints of clusters, and of what refers to them. */
export const clusterLints: readonly Lint[] = [
  { on: "envoy.config.bootstrap.v3.Bootstrap", check: checkTwice },
  { on: "envoy.config.cluster.v3.Cluster", check: checkCluster },
  { on: "envoy.config.route.v3.RouteAction", check: checkRoute },
  { on: "envoy.config.route.v3.WeightedCluster.ClusterWeight", check: checkWeight },
  { on: "envoy.config.core.v3.GrpcService.EnvoyGrpc", check: checkGrpc },
  {
    on: "envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor",
    check: checkProcessorBreaker,
  },
  { on: "envoy.config.route.v3.RetryPolicy", check: checkRetries },
  { on: "envoy.type.v3.FractionalPercent", check: checkFraction },
];

function checkTwice(bootstrap: EnvoyMessage, { report }: LintScope): void {
  const seen = new Set<string>();
  for (const cluster of messagesAt(bootstrap, "static_resources", "clusters")) {
    const name = textField(cluster, "name") ?? "";
    if (seen.has(name)) {
      const message = `another cluster is named ${quoteText(name)}`;
      report({ id: "HG414", path: cluster.path, message, hint: "give it another name" });
    }
    seen.add(name);
  }
}

function checkCluster(cluster: EnvoyMessage, { report }: LintScope): void {
  const outliers = messageAt(cluster, "outlier_detection");
  if (outliers !== undefined && !outliers.fields.has("max_ejection_percent")) {
    report({
      id: "HG421",
      path: outliers.path,
      message: "max_ejection_percent is not set, so all hosts could be ejected",
      hint: "set max_ejection_percent, such as 50",
    });
  }
  const isGuarded = outliers !== undefined || cluster.fields.has("health_checks");
  if (isGuarded || !cluster.fields.has("circuit_breakers")) return;
  report({
    id: "HG423",
    path: cluster.path,
    message: "the cluster has circuit breakers, but failing hosts are never ejected",
    hint: "set outlier_detection",
  });
}

function checkRoute(action: EnvoyMessage, scope: LintScope): void {
  checkLead(action, "cluster", { scope, id: "HG402" });
}

function checkWeight(weight: EnvoyMessage, scope: LintScope): void {
  checkLead(weight, "name", { scope, id: "HG402" });
}

function checkGrpc(service: EnvoyMessage, scope: LintScope): void {
  checkLead(service, "cluster_name", { scope, id: "HG416" });
}

function checkLead(
  message: EnvoyMessage,
  field: string,
  { scope, id }: { readonly scope: LintScope; readonly id: "HG402" | "HG416" },
): void {
  const name = textField(message, field);
  if (name === undefined || scope.clusters === undefined || scope.clusters.has(name)) return;
  const text = `the cluster ${quoteText(name)} does not exist`;
  scope.report({ id, path: [...message.path, field], message: text, hint: "add it" });
}

/** Each request holds a stream, and a slot in the breaker, until its response is complete. */
function checkProcessorBreaker(processor: EnvoyMessage, { root, report }: LintScope): void {
  if (textField(processor, "processing_mode", "response_trailer_mode") !== "SEND") return;
  const name = textField(processor, "grpc_service", "envoy_grpc", "cluster_name");
  const clusters = messagesAt(root, "static_resources", "clusters");
  const cluster = clusters.find((one) => textField(one, "name") === name);
  if (cluster === undefined) return;
  const thresholds = messagesAt(cluster, "circuit_breakers", "thresholds");
  const limits = thresholds.map((one) => numberField(one, "max_requests") ?? defaultRequestsMax);
  if (Math.max(defaultRequestsMax, ...limits) > defaultRequestsMax) return;
  report({
    id: "HG428",
    path: cluster.path,
    message:
      "the breaker of the cluster admits " +
      `${Math.max(0, ...limits) || defaultRequestsMax} requests at once`,
    hint: "set circuit_breakers with a higher max_requests",
  });
}

/** Needs a list of statuses next to it. Callers may add more of them. */
const statusCondition = "retriable-status-codes";

/** Retry conditions that match a refusal. */
const refusalConditions = ["5xx", "gateway-error", statusCondition, "envoy-ratelimited"];

/** Statuses of refusals by Headgate and by Envoy itself. */
const refusalStatuses: readonly number[] = [
  httpStatuses.tooManyRequests,
  httpStatuses.serviceUnavailable,
];

function namesRefusals(policy: EnvoyMessage): boolean {
  const codes = fieldAt(policy, "retriable_status_codes");
  if (codes?.kind !== "list") return true;
  return codes.items.some(
    (item) => item.kind === "scalar" && refusalStatuses.includes(Number(item.value)),
  );
}

function checkRetries(policy: EnvoyMessage, scope: LintScope): void {
  const conditions = (textField(policy, "retry_on") ?? "").split(",").map((one) => one.trim());
  const [repeated] = conditions.filter(
    (one) => refusalConditions.includes(one) && (one !== statusCondition || namesRefusals(policy)),
  );
  const waits = policy.fields.has("rate_limited_retry_back_off");
  if (repeated === undefined || (waits && hasRetryBudget(scope.root))) return;
  scope.report({
    id: "HG424",
    path: policy.path,
    message: `${repeated} retries refused requests ${waits ? "without a budget" : "at once"}`,
    hint: waits
      ? "set retry_budget in the cluster's breakers"
      : "set rate_limited_retry_back_off, and retry_budget in the cluster's breakers",
  });
}

function hasRetryBudget(root: EnvoyMessage): boolean {
  let isFound = false;
  visitMessages(root, ({ desc }) => {
    isFound ||= desc.typeName === "envoy.config.cluster.v3.CircuitBreakers.Thresholds.RetryBudget";
  });
  return isFound;
}

const denominators: Readonly<Record<string, number>> = {
  HUNDRED: 100,
  TEN_THOUSAND: 10_000,
  MILLION: 1_000_000,
};

function checkFraction(fraction: EnvoyMessage, { report }: LintScope): void {
  const numerator = numberField(fraction, "numerator") ?? 0;
  const name = textField(fraction, "denominator") ?? "HUNDRED";
  const most = denominators[name] ?? numerator;
  if (numerator <= most) return;
  const message = `the numerator ${numerator} is more than ${name}`;
  report({ id: "HG420", path: fraction.path, message, hint: `write at most ${most}` });
}
