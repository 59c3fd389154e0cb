import { limitsOf } from "../../core/limits/limit.js";
import type { GeneratedPolicy } from "../base/generator.js";
import { isWatched } from "../envoy/http/telemetry.js";
import { budgetPanels } from "./budget-dashboard.js";
import type { Panel, Section } from "./dashboard.js";
import { lines, numberPanel, own, stacked, sumRate } from "./panels.js";

/** Returns the sections on the state of all replicas, whatever they decide. */
export function fleetSections(policy: GeneratedPolicy): readonly Section[] {
  const admits = policy.services.some(({ admission }) => admission !== undefined);
  return [
    { title: "At a glance", panels: glance },
    { title: "Decisions", panels: decisions },
    ...(policy.quotas.length > 0 ? [{ title: "Quotas", panels: quotaPanels }] : []),
    ...(policy.budgets.length > 0
      ? [{ title: "Budgets", panels: budgetPanels(policy.budgets) }]
      : []),
    { title: "The store", panels: store },
    ...(hasGlobalLimits(policy) ? [{ title: "Regions", panels: regions }] : []),
    ...(admits ? [{ title: "Admission", panels: admission }] : []),
    ...(policy.services.some(isWatched) ? [{ title: "Envoys and leader", panels: loop }] : []),
    { title: "The processes", panels: processes },
  ];
}

/** Reports whether any limit counts the hits of all regions together. */
export function hasGlobalLimits({ rules }: GeneratedPolicy): boolean {
  return rules.some((rule) => limitsOf(rule).some(({ spread }) => spread === "global"));
}

const regions: readonly Panel[] = [
  stacked(
    {
      title: "Borrowed hits",
      about: "Hits of global limits per second that other regions lent to this one.",
      unit: "reqps",
    },
    { "{{peer}}": sumRate(own("headgate_region_borrowed_hits_total"), ["peer"]) },
  ),
  lines(
    {
      title: "Unreachable regions",
      about: "Replicas that cannot reach the Redis of another region.",
      unit: "short",
    },
    { "{{peer}}": `sum by (peer) (1 - ${own("headgate_region_reachable")})` },
  ),
];

const glance: readonly Panel[] = [
  numberPanel(
    { title: "Replicas", about: "Scraped replicas.", unit: "short" },
    `count(${own("headgate_build_info")})`,
  ),
  numberPanel(
    {
      title: "Requests",
      about: "Rate limit requests per second, over all replicas.",
      unit: "reqps",
    },
    sumRate(own("headgate_requests_total")),
  ),
  numberPanel(
    {
      title: "Over a limit",
      about: "The ratio that was denied.",
      unit: "percentunit",
      marks: [{ from: 0.1, color: "orange" }],
    },
    `${sumRate(own("headgate_requests_total", { code: "over_limit" }))} / ` +
      sumRate(own("headgate_requests_total")),
  ),
  numberPanel(
    {
      title: "Without the store",
      about: "Limits per second that a failure mode decided instead of the store.",
      unit: "reqps",
      marks: [{ from: 0.001, color: "red" }],
    },
    `${sumRate(own("headgate_fallback_decisions_total"))} or vector(0)`,
  ),
  numberPanel(
    {
      title: "Newest policy refused",
      about: "Replicas that keep an older policy because the newest is invalid.",
      unit: "short",
      marks: [{ from: 1, color: "red" }],
    },
    `sum(${own("headgate_policy_stale")})`,
  ),
  numberPanel(
    {
      title: "Bugs",
      about: "Calls in the last hour that failed because of an internal error.",
      unit: "short",
      marks: [{ from: 1, color: "red" }],
    },
    `sum(increase(${own("headgate_internal_errors_total")}[1h]))`,
  ),
];

const decisions: readonly Panel[] = [
  stacked(
    { title: "Requests", about: "By overall code.", unit: "reqps" },
    { "{{code}}": sumRate(own("headgate_requests_total"), ["code"]) },
  ),
  stacked(
    {
      title: "Hits by domain",
      about: "Requested hits, whatever the outcome.",
      unit: "reqps",
    },
    { "{{domain}}": sumRate(own("headgate_hits_total"), ["domain"]) },
  ),
  lines(
    {
      title: "Decision latency",
      about: "Without the transport. Envoy waits 20 ms by default.",
      unit: "s",
    },
    {
      p50: quantile(0.5, "headgate_decision_duration_seconds"),
      p99: quantile(0.99, "headgate_decision_duration_seconds"),
    },
  ),
  lines(
    {
      title: "Unknown domains and descriptors",
      about: "Domains that the policy does not have, and descriptors that match no rule.",
      unit: "reqps",
    },
    {
      "unknown domain": sumRate(own("headgate_unknown_domain_requests_total")),
      "no rule": sumRate(own("headgate_unmatched_descriptors_total")),
    },
  ),
  lines(
    { title: "Calls that failed", about: "Answered with an error, by code.", unit: "reqps" },
    { "{{error}}": sumRate(own("headgate_failed_requests_total"), ["error"]) },
  ),
  lines(
    {
      title: "Active policy",
      about: "Replicas by policy version. Two versions for a long time mean two policies.",
      unit: "short",
    },
    { "{{version}}": `count by (version) (${own("headgate_policy_info")})` },
  ),
];

const store: readonly Panel[] = [
  lines(
    {
      title: "Store not used",
      about: "1 while a replica does not use the store after repeated failures.",
      unit: "short",
      marks: [{ from: 1, color: "red" }],
    },
    { "{{instance}}": `max by (instance) (${own("headgate_store_circuit_open")})` },
  ),
  lines(
    { title: "Failed calls", about: "By error.", unit: "reqps" },
    { "{{error}}": sumRate(own("headgate_store_failures_total"), ["error"]) },
  ),
  stacked(
    {
      title: "Answered without the store",
      about: "By on_store_failure: allow, deny, or local (this replica counts).",
      unit: "reqps",
    },
    { "{{mode}}": sumRate(own("headgate_fallback_decisions_total"), ["mode"]) },
  ),
  lines(
    {
      title: "Requests in each batch",
      about: "Requests of one event loop turn travel together.",
      unit: "short",
    },
    {
      requests:
        `${sumRate(own("headgate_store_batch_requests_total"))} / ` +
        sumRate(own("headgate_store_batches_total")),
    },
  ),
  lines(
    {
      title: "Store calls saved",
      about: "Requests that needed no store call of their own.",
      unit: "reqps",
    },
    {
      "over-limit cache": sumRate(own("headgate_over_limit_cache_denials_total")),
      coalesced: sumRate(own("headgate_coalesced_requests_total")),
    },
  ),
];

const admission: readonly Panel[] = [
  stacked(
    { title: "Admitted", about: "By service.", unit: "reqps" },
    {
      "{{service}}": sumRate(own("headgate_admission_decisions_total", { decision: "admitted" }), [
        "service",
      ]),
    },
  ),
  stacked(
    { title: "Refused", about: "By service and cause.", unit: "reqps" },
    {
      "{{service}} {{cause}}": sumRate(
        own("headgate_admission_decisions_total", { decision: "refused", dry_run: "false" }),
        ["service", "cause"],
      ),
    },
  ),
  lines(
    { title: "In flight", about: "Permits in use, by service.", unit: "short" },
    { "{{service}}": `sum by (service) (${own("headgate_admission_inflight")})` },
  ),
  lines(
    { title: "Streams", about: "Open ext_proc streams.", unit: "short" },
    { "{{instance}}": `sum by (instance) (${own("headgate_ext_proc_streams_open")})` },
  ),
  lines(
    { title: "Streams that violated the protocol", about: "By kind.", unit: "reqps" },
    { "{{fault}}": sumRate(own("headgate_exchange_faults_total"), ["fault"]) },
  ),
  lines(
    {
      title: "Passed without a decision",
      about: "Requests for services that the policy does not have.",
      unit: "reqps",
    },
    { requests: sumRate(own("headgate_admission_unknown_service_requests_total")) },
  ),
];

const loop: readonly Panel[] = [
  lines(
    {
      title: "Leading",
      about: "1 on the replica that computes limits and shares. At most one replica leads.",
      unit: "short",
    },
    { "{{instance}}": `max by (instance) (${own("headgate_fleet_leading")})` },
  ),
  lines(
    {
      title: "Age of the newest snapshot",
      about: "The leader makes a snapshot once a second. A snapshot is valid for 15 s.",
      unit: "s",
      marks: [{ from: 5, color: "orange" }],
    },
    { "{{instance}}": `max by (instance) (${own("headgate_fleet_snapshot_age_seconds")})` },
  ),
  lines(
    {
      title: "Envoys",
      about: "Streams that receive layers, and streams that report.",
      unit: "short",
    },
    { "{{stream}}": `sum by (stream) (${own("headgate_control_node_streams")})` },
  ),
  lines(
    {
      title: "Problems of Envoys",
      about: "/debug/fleet names them.",
      unit: "short",
      marks: [{ from: 1, color: "orange" }],
    },
    {
      "Envoys: {{problem}}": `max by (problem) (${own("headgate_control_node_problems")})`,
      "services: {{problem}}": `max by (problem) (${own("headgate_control_service_problems")})`,
    },
  ),
  lines(
    { title: "Layers", about: "Layers sent, and the answers of Envoys.", unit: "reqps" },
    { "{{event}}": sumRate(own("headgate_control_layers_total"), ["event"]) },
  ),
  lines(
    { title: "Snapshots", about: "By outcome.", unit: "reqps" },
    {
      "{{outcome}}": sumRate(own("headgate_fleet_snapshots_total"), ["outcome"]),
      "failed in the store": sumRate(own("headgate_fleet_failed_calls_total")),
    },
  ),
];

const processes: readonly Panel[] = [
  lines(
    { title: "CPU", about: "Cores in use, by replica.", unit: "short" },
    {
      "{{instance}}":
        "sum by (instance) (rate(process_cpu_seconds_total{" + 'job=~"$job"}[$__rate_interval]))',
    },
  ),
  lines(
    { title: "Memory", about: "Resident, by replica.", unit: "bytes" },
    { "{{instance}}": `max by (instance) (${own("process_resident_memory_bytes")})` },
  ),
  lines(
    {
      title: "Event loop",
      about: "Lag of the event loop: 99th percentile.",
      unit: "s",
      marks: [{ from: 0.05, color: "orange" }],
    },
    { "{{instance}}": `max by (instance) (${own("nodejs_eventloop_lag_p99_seconds")})` },
  ),
  lines(
    {
      title: "Overloaded",
      about: "1 while limits answer with on_store_failure because of overload.",
      unit: "short",
      marks: [{ from: 1, color: "red" }],
    },
    { "{{cause}}": `max by (cause) (${own("headgate_overloaded")})` },
  ),
  lines(
    { title: "Requests in flight", about: "By replica.", unit: "short" },
    { "{{instance}}": `max by (instance) (${own("headgate_requests_in_flight")})` },
  ),
];

/** Returns a quantile over all replicas. */
function quantile(of: number, histogram: string): string {
  return `histogram_quantile(${of}, ${sumRate(own(`${histogram}_bucket`), ["le"])})`;
}

/** Panels of what Envoys admit themselves: demand for each quota, and its assignments. */
const quotaPanels: readonly Panel[] = [
  numberPanel(
    {
      title: "Without a lease",
      about:
        "Limits that replicas hand out with on_store_failure, because their lease has expired.",
      unit: "short",
      marks: [{ from: 1, color: "red" }],
    },
    `sum(${own("headgate_quota_leases", { state: "lost" })})`,
  ),
  lines(
    {
      title: "Wanted",
      about: "Requests of callers at Envoys, admitted or not, by quota, in hits per second.",
      unit: "reqps",
    },
    { "{{quota}}": `sum by (quota) (${own("headgate_quota_demand_rate")})` },
  ),
  lines(
    {
      title: "Assigned",
      about: "Maximum that Envoys may admit, by quota. Unused capacity is lent.",
      unit: "reqps",
    },
    { "{{quota}}": `sum by (quota) (${own("headgate_quota_assigned_rate")})` },
  ),
  lines(
    { title: "Used", about: "Reported admitted requests.", unit: "reqps" },
    { "{{outcome}}": sumRate(own("headgate_quota_hits_total"), ["outcome"]) },
  ),
  stacked(
    { title: "Leases", about: "Limits of replicas, by lease state.", unit: "short" },
    { "{{state}}": `sum by (state) (${own("headgate_quota_leases")})` },
  ),
  lines(
    { title: "Streams", about: "Envoys that report usage, by replica.", unit: "short" },
    { "{{instance}}": `max by (instance) (${own("headgate_quota_streams")})` },
  ),
  stacked(
    { title: "Told", about: "Buckets, by assignment.", unit: "reqps" },
    { "{{kind}}": sumRate(own("headgate_quota_assignments_total"), ["kind"]) },
  ),
  lines(
    {
      title: "Problems of reports",
      about: "Buckets without a share or beyond a bound, and impossible usage.",
      unit: "reqps",
    },
    {
      "ignored: {{cause}}": sumRate(own("headgate_quota_ignored_reports_total"), ["cause"]),
      "beyond the bound of a {{bound}}": sumRate(own("headgate_quota_overflows_total"), ["bound"]),
      "unusual: {{reason}}": sumRate(own("headgate_quota_unusual_reports_total"), ["reason"]),
    },
  ),
];
