import type { ServicePolicy } from "../../policy/services/service-policy.js";
import type { GeneratedPolicy } from "../base/generator.js";
import type { Choice, Panel, Section } from "./dashboard.js";
import { byClass, envoys, lines, rate, stacked, sumRate } from "./panels.js";
import { withEnvoyLabel } from "./promql.js";

/** Variable that selects clusters. */
export const clusterChoice: Choice = {
  name: "cluster",
  label: "Cluster",
  query: `query_result(count by (envoy_cluster_name) (${withEnvoyLabel(
    "envoy_cluster_upstream_rq_active",
    "envoy_cluster_name",
  )}))`,
  regex: '/envoy_cluster_name="([^"]+)"/',
};

/** Returns the sections of Envoys' own actions and refusals, as far as the policy uses them. */
export function envoySections({ services, proxies }: GeneratedPolicy): readonly Section[] {
  const some = (has: (service: ServicePolicy) => boolean): boolean => services.some(has);
  const filters = [
    ...(some(({ rateLimit }) => rateLimit !== undefined && !rateLimit.inExtProc) ? rateLimit : []),
    ...(some(({ admission }) => admission !== undefined) ? extProc : []),
    ...(some(({ localRateLimit }) => localRateLimit !== undefined) ? localRateLimit : []),
    ...(some(({ adaptiveConcurrency }) => adaptiveConcurrency !== undefined) ? adaptive : []),
    ...(some(({ admissionControl }) => admissionControl !== undefined) ? admissionControl : []),
  ];
  return [
    { title: "Circuit breakers", panels: breakers },
    { title: "Hosts and retries", panels: hosts },
    ...(filters.length === 0 ? [] : [{ title: "Filters", panels: filters }]),
    ...(proxies.overload === undefined
      ? []
      : [{ title: "Overload manager", panels: overloadPanels(proxies.overload) }]),
    { title: "The processes", panels: processes },
  ];
}

/** Selects the chosen clusters. Istio's Envoys have another label, and lack this one. */
function clusters(metric: string): string {
  const chosen = 'envoy_cluster_name=~"$cluster|",cluster_name=~"$cluster|"';
  return envoys(metric).replace("}", `,${chosen}}`);
}

/** Aggregates a gauge of all Envoys by cluster. */
function ofEach(how: "sum" | "min", metric: string): string {
  return byCluster(how, clusters(metric));
}

/** Returns the rate of a counter of all Envoys per second, by cluster. */
function rateOfEach(metric: string): string {
  return byCluster("sum", rate(clusters(metric)));
}

function byCluster(how: "sum" | "min", vector: string): string {
  return `${how} by (envoy_cluster_name) (${withEnvoyLabel(vector, "envoy_cluster_name")})`;
}

const breakers: readonly Panel[] = [
  lines(
    {
      title: "Open at DEFAULT",
      about:
        "Envoys whose breaker currently refuses requests. Expected for a breaker " +
        "that Headgate drives.",
      unit: "short",
    },
    {
      "{{envoy_cluster_name}}": ofEach("sum", "envoy_cluster_circuit_breakers_default_rq_open"),
    },
  ),
  lines(
    {
      title: "Open at HIGH",
      about: "The same for critical requests; this should never happen.",
      unit: "short",
      marks: [{ from: 1, color: "red" }],
    },
    {
      "{{envoy_cluster_name}}": ofEach("sum", "envoy_cluster_circuit_breakers_high_rq_open"),
    },
  ),
  lines(
    {
      title: "Room",
      about: "Remaining requests that breakers admit, at DEFAULT, over all Envoys.",
      unit: "short",
    },
    {
      "{{envoy_cluster_name}}": ofEach(
        "sum",
        "envoy_cluster_circuit_breakers_default_remaining_rq",
      ),
    },
  ),
  stacked(
    { title: "Overflow", about: "Requests that a breaker refused.", unit: "reqps" },
    {
      "{{envoy_cluster_name}}": rateOfEach("envoy_cluster_upstream_rq_active_overflow"),
      "{{envoy_cluster_name}} waiting for a connection": rateOfEach(
        "envoy_cluster_upstream_rq_pending_overflow",
      ),
    },
  ),
];

const hosts: readonly Panel[] = [
  lines(
    {
      title: "Ejected hosts",
      about: "Failing hosts that are ejected for a while.",
      unit: "short",
      marks: [{ from: 1, color: "orange" }],
    },
    {
      "{{envoy_cluster_name}}": ofEach("sum", "envoy_cluster_outlier_detection_ejections_active"),
    },
  ),
  lines(
    {
      title: "Ejections",
      about: "Enforced ejections, and those skipped because too many hosts were ejected.",
      unit: "reqps",
    },
    {
      "{{envoy_cluster_name}}": rateOfEach(
        "envoy_cluster_outlier_detection_ejections_enforced_total",
      ),
      "{{envoy_cluster_name}} too many": rateOfEach(
        "envoy_cluster_outlier_detection_ejections_overflow",
      ),
    },
  ),
  lines(
    { title: "Healthy hosts", about: "Minimum over the Envoys.", unit: "short" },
    {
      "{{envoy_cluster_name}}": ofEach("min", "envoy_cluster_membership_healthy"),
    },
  ),
  lines(
    {
      title: "Retries",
      about: "Retries, successful ones, and those that exceeded the budget.",
      unit: "reqps",
    },
    {
      "{{envoy_cluster_name}}": rateOfEach("envoy_cluster_upstream_rq_retry"),
      "{{envoy_cluster_name}} helped": rateOfEach("envoy_cluster_upstream_rq_retry_success"),
      "{{envoy_cluster_name}} no room": rateOfEach("envoy_cluster_upstream_rq_retry_overflow"),
    },
  ),
];

const rateLimit: readonly Panel[] = [
  lines(
    {
      title: "Rate limits",
      about: "Answers of Headgate, errors, and requests that passed without an answer.",
      unit: "reqps",
    },
    {
      ok: sumRate(envoys("envoy_cluster_ratelimit_headgate_ok")),
      "over limit": sumRate(envoys("envoy_cluster_ratelimit_headgate_over_limit")),
      error: sumRate(envoys("envoy_cluster_ratelimit_headgate_error")),
      "passed without an answer": sumRate(
        envoys("envoy_cluster_ratelimit_headgate_failure_mode_allowed"),
      ),
    },
  ),
];

const extProc: readonly Panel[] = [
  lines(
    {
      title: "ext_proc",
      about: "Streams to Headgate, refusals and failures.",
      unit: "reqps",
    },
    {
      streams: sumRate(envoys("envoy_http_ext_proc_headgate_streams_started")),
      refused: sumRate(envoys("envoy_http_ext_proc_headgate_immediate_responses_sent")),
      failed: sumRate(envoys("envoy_http_ext_proc_headgate_streams_failed")),
      "too late": sumRate(envoys("envoy_http_ext_proc_headgate_message_timeouts")),
      "passed without an answer": sumRate(
        envoys("envoy_http_ext_proc_headgate_failure_mode_allowed"),
      ),
    },
  ),
];

const localRateLimit: readonly Panel[] = [
  lines(
    {
      title: "Local rate limits",
      about:
        "Requests over the limit, and those that were refused: none while Headgate is connected.",
      unit: "reqps",
    },
    {
      "{{envoy_local_http_ratelimit_prefix}} over": sumRate(
        envoys("envoy_http_local_rate_limit_rate_limited"),
        ["envoy_local_http_ratelimit_prefix"],
      ),
      "{{envoy_local_http_ratelimit_prefix}} refused": sumRate(
        envoys("envoy_http_local_rate_limit_enforced"),
        ["envoy_local_http_ratelimit_prefix"],
      ),
    },
  ),
];

const gradientController = "envoy_http_adaptive_concurrency_gradient_controller";

const adaptive: readonly Panel[] = [
  lines(
    {
      title: "Adaptive concurrency",
      about: "Minimum and maximum limit of the Envoys' own controllers.",
      unit: "short",
    },
    {
      least: `min(${envoys(`${gradientController}_concurrency_limit`)})`,
      most: `max(${envoys(`${gradientController}_concurrency_limit`)})`,
    },
  ),
  lines(
    { title: "Refused by it", about: "Requests above that limit.", unit: "reqps" },
    { refused: sumRate(envoys(`${gradientController}_rq_blocked`)) },
  ),
];

const admissionControl: readonly Panel[] = [
  lines(
    {
      title: "Admission control",
      about: "Requests that callers' Envoys refused because too many failed.",
      unit: "reqps",
    },
    { refused: sumRate(envoys("envoy_http_admission_control_rq_rejected")) },
  ),
];

function overloadPanels(
  overload: NonNullable<GeneratedPolicy["proxies"]["overload"]>,
): readonly Panel[] {
  const pressure = (monitor: string): string =>
    `max(${envoys(`envoy_overload_envoy_resource_monitors_${monitor}_pressure`)})`;
  const active = (action: string): string =>
    `sum(${envoys(`envoy_overload_envoy_overload_actions_${action}_active`)})`;
  const scale = (action: string): string =>
    `max(${envoys(`envoy_overload_envoy_overload_actions_${action}_scale_percent`)}) / 100`;
  const { heap, cpu, cgroupMemory, connectionsMax } = overload;
  const pressures = {
    ...(heap === undefined ? {} : { heap: pressure("fixed_heap") }),
    ...(cpu === undefined ? {} : { CPU: pressure("cpu_utilization") }),
    ...(cgroupMemory === undefined ? {} : { "cgroup memory": pressure("cgroup_memory") }),
    ...(connectionsMax === undefined
      ? {}
      : { connections: pressure("global_downstream_max_connections") }),
  };
  if (Object.keys(pressures).length === 0) return [];
  const panels: Panel[] = [
    lines(
      {
        title: "Pressure",
        about: "Maximum over the Envoys; 1 is full.",
        unit: "percentunit",
        marks: [{ from: 0.95, color: "red" }],
      },
      pressures,
    ),
  ];
  if (heap !== undefined) {
    panels.push(
      lines(
        { title: "Acting", about: "Envoys with a fully active action.", unit: "short" },
        {
          "release memory": active("shrink_heap"),
          "stop accepting requests": active("stop_accepting_requests"),
        },
      ),
      lines(
        {
          title: "Shedding",
          about: "How far an action is active: maximum over the Envoys.",
          unit: "percentunit",
        },
        { "stop accepting requests": scale("stop_accepting_requests") },
      ),
    );
  }
  return panels;
}

const processes: readonly Panel[] = [
  lines(
    { title: "Envoys", about: "Live Envoys.", unit: "short" },
    { live: `sum(${envoys("envoy_server_live")})` },
  ),
  lines(
    { title: "Memory", about: "For each Envoy.", unit: "bytes" },
    { "{{instance}}": `max by (instance) (${envoys("envoy_server_memory_physical_size")})` },
  ),
  stacked(
    { title: "Responses to callers", about: "By status class.", unit: "reqps" },
    {
      "{{envoy_response_code_class}}xx": byClass(envoys("envoy_http_downstream_rq_xx")),
    },
  ),
];
