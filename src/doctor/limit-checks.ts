import { many } from "../core/base/many.js";
import { breakerKey } from "../core/feedback/runtime-keys.js";
import type { PlainMap } from "../generate/base/plain-tree.js";
import { clusterNames } from "../policy/services/service-clusters.js";
import { type Diagnostic, type DoctorCheck, type DoctorInput, findingsOr } from "./diagnostic.js";
import { type EnvoyStats, quantileOf } from "./envoy-stats.js";
import { mapAt, mapsAt, numberAt, shownName, textAt } from "./json-access.js";

/** Default breaker of a cluster. Source: CircuitBreakers.Thresholds.max_requests. */
const defaultRequestsMax = 1_024;

const inFlightQuantile = 0.99;

/** Compares limits and breakers with requests in flight, and finds what makes overload worse. */
export const checkLimits: DoctorCheck = (input) => [
  ...checkInFlight(input),
  ...checkOutliers(input),
  ...checkRetries(input),
];

function checkInFlight(input: DoctorInput): readonly Diagnostic[] {
  const { policy, dump, stats } = input;
  const services = policy?.services ?? [];
  const led = services.flatMap((service) =>
    clusterNames(service)
      .filter((name) => dump.clusters.has(name))
      .map((cluster) => ({ service, cluster })),
  );
  if (led.length === 0) return [];
  if (stats.length === 0) {
    return [{ kind: "unseen", id: "HG550", seen: "requests in flight: no statistics" }];
  }
  const observed = led.map((one) => ({ ...one, inFlight: inFlightOf(one.cluster, stats) }));
  const breakers = observed.flatMap(({ cluster, inFlight }) =>
    judgeBreaker(cluster, inFlight, input),
  );
  const limits = observed.flatMap(({ service, inFlight }): readonly Diagnostic[] => {
    const bounds = [service.admission?.maxInFlight, service.concurrency?.settings.limits.max];
    const limit = Math.min(...bounds.map((bound) => bound ?? Number.POSITIVE_INFINITY));
    if (inFlight === 0 || inFlight < limit) return [];
    const name = shownName(service.name);
    const seen = `${name} has ${inFlight} in flight (p99), and its limit is ${limit}`;
    return [{ kind: "finding", id: "HG551", severity: "warning", seen }];
  });
  const most = Math.max(...observed.map(({ inFlight }) => inFlight));
  const samples =
    stats.length === 1 ? "one sample; --watch 5s takes more" : `${stats.length} samples`;
  return [
    ...findingsOr(breakers, { id: "HG550", seen: `at most ${most} in flight (p99, ${samples})` }),
    ...findingsOr(limits, { id: "HG551", seen: "the requests in flight reach no limit" }),
    ...checkOverload(new Set(led.map(({ cluster }) => cluster)), input),
  ];
}

/** Finds refusals of breakers while watched, or ever, including breakers that Headgate controls. */
function checkOverload(clusters: ReadonlySet<string>, input: DoctorInput): readonly Diagnostic[] {
  const { stats } = input;
  const findings = [...clusters].flatMap((cluster): readonly Diagnostic[] => {
    const total = overflowOf(cluster, stats.at(-1));
    const count = stats.length === 1 ? total : total - overflowOf(cluster, stats[0]);
    if (count <= 0) return [];
    const when =
      stats.length === 1
        ? "since Envoy started; --watch 5s shows whether it continues"
        : "while it was watched";
    const high = highMax(cluster, input);
    const kept = high === undefined ? "" : `; ${high} more are reserved for HIGH`;
    const refused = `the breaker of ${shownName(cluster)} refused ${many(count, "request")}`;
    const seen = `${refused} ${when}${kept}`;
    return [{ kind: "finding", id: "HG554", severity: "warning", seen }];
  });
  return findingsOr(findings, { id: "HG554", seen: "no breaker of a service refused a request" });
}

/** Returns the breaker's limit at Envoy's priority HIGH; undefined if there is none. */
function highMax(cluster: string, { dump, runtime }: DoctorInput): number | undefined {
  const driven = mapAt(runtime, "entries", breakerKey(cluster, "high", "max_requests"));
  const thresholds = mapsAt(dump.clusters.get(cluster), "circuit_breakers", "thresholds");
  const configured = thresholds.find((one) => textAt(one, "priority") === "HIGH");
  const value = textAt(driven, "final_value");
  return value === undefined ? numberAt(configured, "max_requests") : Number(value);
}

/** Sums the overflows of the breaker for requests and of the one for pending requests. */
function overflowOf(cluster: string, stats: EnvoyStats | undefined): number {
  const of = (name: string): number => stats?.get(`cluster.${cluster}.${name}`) ?? 0;
  return of("upstream_rq_active_overflow") + of("upstream_rq_pending_overflow");
}

function inFlightOf(cluster: string, stats: readonly EnvoyStats[]): number {
  const values = stats.map((one) => one.get(`cluster.${cluster}.upstream_rq_active`) ?? 0);
  return quantileOf(values, inFlightQuantile);
}

/** Judges a breaker. One that Headgate controls needs no check. */
function judgeBreaker(name: string, inFlight: number, input: DoctorInput): readonly Diagnostic[] {
  const { dump, runtime, stats } = input;
  const key = breakerKey(name, "default", "max_requests");
  if (mapAt(runtime, "entries", key) !== undefined) return [];
  const threshold = mapsAt(dump.clusters.get(name), "circuit_breakers", "thresholds").find(
    (one) => (textAt(one, "priority") ?? "DEFAULT") === "DEFAULT",
  );
  const most = numberAt(threshold, "max_requests") ?? defaultRequestsMax;
  const overflow = overflowOf(name, stats.at(-1));
  if ((inFlight === 0 || inFlight < most) && overflow === 0) return [];
  const seen =
    `the breaker of ${shownName(name)} allows ${most}, ${inFlight} are in flight ` +
    `(p99), and it refused ${many(overflow, "request")}`;
  return [{ kind: "finding", id: "HG550", severity: "warning", seen }];
}

function checkOutliers({ dump }: DoctorInput): readonly Diagnostic[] {
  const findings = [...dump.clusters].flatMap(([name, cluster]): readonly Diagnostic[] => {
    const outliers = mapAt(cluster, "outlier_detection");
    if (outliers === undefined) return [];
    const percent = numberAt(outliers, "max_ejection_percent");
    if (percent !== undefined && percent < 100) return [];
    const what = percent === undefined ? "sets no max_ejection_percent" : `may eject ${percent} %`;
    const seen = `the outlier detection of ${shownName(name)} ${what}`;
    const todo = "outlier_detection: {max_ejection_percent: 50}";
    return [{ kind: "finding", id: "HG552", severity: "warning", seen, todo }];
  });
  return findingsOr(findings, { id: "HG552", seen: "every cluster has a maximum for ejections" });
}

/** Retry conditions that a refusal meets. Source: Envoy, "Router", x-envoy-retry-on. */
const refusalConditions = ["5xx", "gateway-error", "retriable-status-codes", "envoy-ratelimited"];

function checkRetries({ dump }: DoctorInput): readonly Diagnostic[] {
  const findings = new Map<string, Diagnostic>();
  for (const { routes } of dump.chains) {
    for (const host of mapsAt(routes, "virtual_hosts")) {
      for (const route of mapsAt(host, "routes")) {
        const own = mapAt(route, "route", "retry_policy");
        const policy = own ?? mapAt(host, "retry_policy");
        const cluster = textAt(route, "route", "cluster");
        if (policy === undefined || cluster === undefined) continue;
        const why = repeated(policy, dump.clusters.get(cluster));
        if (why === undefined) continue;
        // All routes of a host that use its retry policy are one finding.
        const place = own === undefined ? host : route;
        const name = shownName(textAt(place, "name") ?? "a route without a name");
        const seen = `${name}: ${why}`;
        findings.set(seen, { kind: "finding", id: "HG553", severity: "warning", seen });
      }
    }
  }
  return findingsOr([...findings.values()], {
    id: "HG553",
    seen: "no refused request is retried immediately",
  });
}

function repeated(policy: PlainMap, cluster: PlainMap | undefined): string | undefined {
  const conditions = (textAt(policy, "retry_on") ?? "").split(",").map((one) => one.trim());
  const [first] = conditions.filter((one) => refusalConditions.includes(one));
  if (first === undefined) return undefined;
  const waits = mapAt(policy, "rate_limited_retry_back_off") !== undefined;
  if (conditions.includes("envoy-ratelimited") && !waits) {
    return (
      "envoy-ratelimited retries refused requests immediately (no " + "rate_limited_retry_back_off)"
    );
  }
  const thresholds = mapsAt(cluster, "circuit_breakers", "thresholds");
  const hasBudget = thresholds.some((one) => mapAt(one, "retry_budget") !== undefined);
  return hasBudget ? undefined : `${first} retries refused requests without a retry budget`;
}
