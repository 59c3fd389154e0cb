import type { GeneratedPolicy } from "../base/generator.js";
import { isWatched } from "../envoy/http/telemetry.js";
import type { Panel, Section } from "./dashboard.js";
import { lines, numberPanel, own, stacked, sumRate } from "./panels.js";

/** How all replicas are, whatever they are asked. */
export function fleetSections(policy: GeneratedPolicy): readonly Section[] {
  const admits = policy.services.some(({ admission }) => admission !== undefined);
  return [
    { title: "At a glance", panels: glance },
    { title: "Decisions", panels: decisions },
    ...(policy.quotas.length > 0 ? [{ title: "Quotas", panels: quotaPanels }] : []),
    { title: "The store", panels: store },
    ...(admits ? [{ title: "Admission", panels: admission }] : []),
    ...(policy.services.some(isWatched) ? [{ title: "Envoys and leader", panels: loop }] : []),
    { title: "The processes", panels: processes },
  ];
}

const glance: readonly Panel[] = [
  numberPanel(
    { title: "Replicas", about: "Headgates that are scraped.", unit: "short" },
    `count(${own("headgate_build_info")})`,
  ),
  numberPanel(
    { title: "Requests", about: "Rate-limit requests a second, over all replicas.", unit: "reqps" },
    sumRate(own("headgate_requests_total")),
  ),
  numberPanel(
    {
      title: "Over a limit",
      about: "The share of them that was refused.",
      unit: "percentunit",
      marks: [{ from: 0.1, color: "orange" }],
    },
    `${sumRate(own("headgate_requests_total", { code: "over_limit" }))} / ` +
      sumRate(own("headgate_requests_total")),
  ),
  numberPanel(
    {
      title: "Without the store",
      about: "Limits a second that a failure mode answered, and not the store.",
      unit: "reqps",
      marks: [{ from: 0.001, color: "red" }],
    },
    `${sumRate(own("headgate_fallback_decisions_total"))} or vector(0)`,
  ),
  numberPanel(
    {
      title: "Newest policy refused",
      about: "Replicas that keep an older policy because the newest has a mistake.",
      unit: "short",
      marks: [{ from: 1, color: "red" }],
    },
    `sum(${own("headgate_policy_stale")})`,
  ),
  numberPanel(
    {
      title: "Bugs",
      about: "Calls in the last hour that failed by a fault of this program.",
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
      about: "Hits that were asked for, whatever became of them.",
      unit: "reqps",
    },
    { "{{domain}}": sumRate(own("headgate_hits_total"), ["domain"]) },
  ),
  lines(
    {
      title: "Time of a decision",
      about: "Without the transport. Envoy waits for 20 ms, unless the policy says otherwise.",
      unit: "s",
    },
    {
      "half within": quantile(0.5, "headgate_decision_duration_seconds"),
      "99 of 100 within": quantile(0.99, "headgate_decision_duration_seconds"),
    },
  ),
  lines(
    {
      title: "Asked for what is unknown",
      about: "Domains that the policy does not hold, and descriptors that meet no rule.",
      unit: "reqps",
    },
    {
      "unknown domain": sumRate(own("headgate_unknown_domain_requests_total")),
      "no rule": sumRate(own("headgate_unmatched_descriptors_total")),
    },
  ),
  lines(
    { title: "Calls that failed", about: "Answered with an error, by its code.", unit: "reqps" },
    { "{{error}}": sumRate(own("headgate_failed_requests_total"), ["error"]) },
  ),
  lines(
    {
      title: "Active policy",
      about: "Replicas by version of the policy: two lines for long are two policies.",
      unit: "short",
    },
    { "{{version}}": `count by (version) (${own("headgate_policy_info")})` },
  ),
];

const store: readonly Panel[] = [
  lines(
    {
      title: "Left alone",
      about: "1 while a replica leaves the store alone after repeated failures.",
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
      about: "Limits by their on_store_failure: allow passes, deny refuses, local counts here.",
      unit: "reqps",
    },
    { "{{mode}}": sumRate(own("headgate_fallback_decisions_total"), ["mode"]) },
  ),
  lines(
    {
      title: "Requests a batch",
      about: "Requests of one turn of the event loop travel together.",
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
      title: "Asked less",
      about: "Requests that needed no question of their own to the store.",
      unit: "reqps",
    },
    {
      "refused from memory": sumRate(own("headgate_remembered_refusals_total")),
      "together with the same": sumRate(own("headgate_coalesced_requests_total")),
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
    { title: "In work", about: "Permits in use, by service.", unit: "short" },
    { "{{service}}": `sum by (service) (${own("headgate_admission_inflight")})` },
  ),
  lines(
    { title: "Streams", about: "ext_proc streams that are open.", unit: "short" },
    { "{{instance}}": `sum by (instance) (${own("headgate_ext_proc_streams_open")})` },
  ),
  lines(
    { title: "Streams that broke the protocol", about: "By how.", unit: "reqps" },
    { "{{fault}}": sumRate(own("headgate_exchange_faults_total"), ["fault"]) },
  ),
  lines(
    {
      title: "Passed unlooked at",
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
      about: "1 at the replica that computes limits and shares. There is one, or there are none.",
      unit: "short",
    },
    { "{{instance}}": `max by (instance) (${own("headgate_fleet_leading")})` },
  ),
  lines(
    {
      title: "Age of the newest snapshot",
      about: "A snapshot of limits and shares is made once a second, and holds for 15.",
      unit: "s",
      marks: [{ from: 5, color: "orange" }],
    },
    { "{{instance}}": `max by (instance) (${own("headgate_fleet_snapshot_age_seconds")})` },
  ),
  lines(
    { title: "Envoys", about: "Those that get layers, and that tell numbers.", unit: "short" },
    { "{{stream}}": `sum by (stream) (${own("headgate_control_node_streams")})` },
  ),
  lines(
    {
      title: "What is wrong with Envoys",
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
    { title: "Layers", about: "Sent, and what Envoys said to them.", unit: "reqps" },
    { "{{event}}": sumRate(own("headgate_control_layers_total"), ["event"]) },
  ),
  lines(
    { title: "Snapshots", about: "By what became of them.", unit: "reqps" },
    {
      "{{outcome}}": sumRate(own("headgate_fleet_snapshots_total"), ["outcome"]),
      "the store did not take or give": sumRate(own("headgate_fleet_failed_calls_total")),
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
      about: "How late the loop was for 1 in 100 of its turns.",
      unit: "s",
      marks: [{ from: 0.05, color: "orange" }],
    },
    { "{{instance}}": `max by (instance) (${own("nodejs_eventloop_lag_p99_seconds")})` },
  ),
  lines(
    {
      title: "Overloaded",
      about: "1 while limits answer by their on_store_failure for want of time.",
      unit: "short",
      marks: [{ from: 1, color: "red" }],
    },
    { "{{cause}}": `max by (cause) (${own("headgate_overloaded")})` },
  ),
  lines(
    { title: "Requests in work", about: "By replica.", unit: "short" },
    { "{{instance}}": `max by (instance) (${own("headgate_requests_in_flight")})` },
  ),
];

/** Over all replicas. */
function quantile(of: number, histogram: string): string {
  return `histogram_quantile(${of}, ${sumRate(own(`${histogram}_bucket`), ["le"])})`;
}

/** What Envoys let pass by themselves: what they want of each quota, and what they have. */
const quotaPanels: readonly Panel[] = [
  numberPanel(
    {
      title: "Without a lease",
      about: "Limits of which replicas hand out by on_store_failure, as no lease holds any more.",
      unit: "short",
      marks: [{ from: 1, color: "red" }],
    },
    `sum(${own("headgate_quota_leases", { state: "lost" })})`,
  ),
  lines(
    {
      title: "Wanted",
      about: "What callers ask of Envoys, admitted or not, by quota. Hits a second.",
      unit: "reqps",
    },
    { "{{quota}}": `sum by (quota) (${own("headgate_quota_demand_rate")})` },
  ),
  lines(
    {
      title: "Assigned",
      about: "The most that Envoys may let pass, by quota. What nobody wants is lent.",
      unit: "reqps",
    },
    { "{{quota}}": `sum by (quota) (${own("headgate_quota_assigned_rate")})` },
  ),
  lines(
    { title: "Used", about: "What Envoys said that they let pass.", unit: "reqps" },
    { "{{outcome}}": sumRate(own("headgate_quota_hits_total"), ["outcome"]) },
  ),
  stacked(
    { title: "Leases", about: "Limits of replicas, by what they may hand out.", unit: "short" },
    { "{{state}}": `sum by (state) (${own("headgate_quota_leases")})` },
  ),
  lines(
    { title: "Streams", about: "Envoys that report usage, by replica.", unit: "short" },
    { "{{instance}}": `max by (instance) (${own("headgate_quota_streams")})` },
  ),
  stacked(
    { title: "Told", about: "Buckets, by what they were told.", unit: "reqps" },
    { "{{kind}}": sumRate(own("headgate_quota_assignments_total"), ["kind"]) },
  ),
  lines(
    {
      title: "What is wrong with reports",
      about: "Buckets without a share, beyond a bound, or with usage that cannot be.",
      unit: "reqps",
    },
    {
      "ignored: {{cause}}": sumRate(own("headgate_quota_ignored_reports_total"), ["cause"]),
      "beyond the bound of a {{bound}}": sumRate(own("headgate_quota_overflows_total"), ["bound"]),
      "unusual: {{reason}}": sumRate(own("headgate_quota_unusual_reports_total"), ["reason"]),
    },
  ),
];
