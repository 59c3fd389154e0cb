import type { ServicePolicy } from "../../policy/services/service-policy.js";
import { isWatched } from "../envoy/http/telemetry.js";
import { admissionPanels, decided, mostBy, permitPanels } from "./admission-panels.js";
import type { Mark, Panel, Section } from "./dashboard.js";
import { byClass, envoys, lines, numberPanel, own, stacked, sumRate } from "./panels.js";
import { clustersNamed } from "./promql.js";

/** Maximum number of signal keys with a panel of their own. */
export const keyPanelsMax = 24;

/**
 * Returns the sections of a service: its load, its queue and its refusals.
 *
 * @param clusters that lead to it, as Envoys call them
 */
export function serviceSections(
  service: ServicePolicy,
  clusters: readonly string[],
): readonly Section[] {
  const { admission, concurrency } = service;
  const sections: Section[] = [{ title: "At a glance", panels: glance(service, clusters) }];
  if (isWatched(service)) sections.push({ title: "The fleet's limit", panels: fleet(service) });
  if (concurrency?.signal !== undefined) {
    sections.push({ title: "The signal", panels: signal(service) });
  }
  if (admission !== undefined) {
    sections.push({ title: "Admission", panels: admissionPanels(service) });
    sections.push({ title: "Permits and queue", panels: permitPanels(service) });
  }
  sections.push({ title: "At its Envoys", panels: atEnvoys(clusters) });
  return sections;
}

/** All replicas export the same snapshot, so this takes the maximum. */
function newest(metric: string, service: string): string {
  return `max(${own(metric, { service })})`;
}

function glance(policy: ServicePolicy, clusters: readonly string[]): readonly Panel[] {
  const { name: service, admission } = policy;
  const panels: Panel[] = [];
  if (isWatched(policy)) {
    panels.push(
      numberPanel(
        { title: "Limit", about: "Requests in flight, over the fleet.", unit: "short" },
        newest("headgate_fleet_limit", service),
      ),
      numberPanel(
        { title: "In flight", about: "As the Envoys report them.", unit: "short" },
        newest("headgate_fleet_inflight", service),
      ),
      numberPanel(
        { title: "Ended", about: "Requests per second.", unit: "reqps" },
        newest("headgate_fleet_request_rate", service),
      ),
      numberPanel(
        {
          title: "Refused by breakers",
          about: "Requests per second that Envoys' circuit breakers refused before admission.",
          unit: "reqps",
          marks: [{ from: 0.1, color: "orange" }],
        },
        sumRate(own("headgate_control_overflow_requests_total", { service })),
      ),
    );
  }
  if (admission !== undefined) {
    panels.push(
      numberPanel(
        {
          title: "Asked",
          about: "Requests per second that admission decided.",
          unit: "reqps",
        },
        sumRate(decided(service, { dry_run: "false" })),
      ),
      numberPanel(
        {
          title: "Refused",
          about: "The ratio that was refused.",
          unit: "percentunit",
          marks: [{ from: 0.1, color: "orange" }],
        },
        `${sumRate(decided(service, { decision: "refused", dry_run: "false" }))} / ` +
          sumRate(decided(service, { dry_run: "false" })),
      ),
      numberPanel(
        {
          title: "Critical ones refused",
          about: "Critical requests per second that were refused; this should be 0.",
          unit: "reqps",
          marks: [{ from: 0.001, color: "red" }],
        },
        `${sumRate(
          decided(service, { priority: "critical", decision: "refused", dry_run: "false" }),
        )} or vector(0)`,
      ),
    );
  }
  if (panels.length > 0) return panels;
  return [
    numberPanel(
      { title: "In flight", about: "Requests at its Envoys.", unit: "short" },
      `sum(${envoys("envoy_cluster_upstream_rq_active", clustersNamed(clusters))})`,
    ),
  ];
}

function fleet({ name: service, concurrency }: ServicePolicy): readonly Panel[] {
  const { min = 1, max = 1_000 } = concurrency?.settings.limits ?? {};
  const marks: readonly Mark[] = [
    { from: min, color: "orange" },
    { from: max, color: "green" },
  ];
  return [
    lines(
      {
        title: "Limit and requests in flight",
        about: `The law moves the limit between ${min} and ${max}.`,
        unit: "short",
        ...(min < max ? { marks } : {}),
      },
      {
        limit: newest("headgate_fleet_limit", service),
        "in flight": newest("headgate_fleet_inflight", service),
      },
    ),
    lines(
      {
        title: "Latency",
        about: "Measured latency, and latency without queueing as the law estimates it.",
        unit: "s",
      },
      {
        now: newest("headgate_fleet_rtt_seconds", service),
        "without queueing": newest("headgate_fleet_min_rtt_seconds", service),
      },
    ),
    lines(
      {
        title: "Gradient",
        about: "Ratio of the two latencies, as the law bounds it. Below 1 there is queueing.",
        unit: "none",
      },
      { gradient: newest("headgate_fleet_gradient", service) },
    ),
    lines(
      {
        title: "Shares",
        about: "Sum of all Envoys' shares, and the part that Envoys have.",
        unit: "short",
      },
      {
        "shares at {{priority}}": mostBy("priority", "headgate_fleet_shares", service),
        "at Envoys": `sum(${own("headgate_control_held_requests", { service })})`,
      },
    ),
    lines(
      {
        title: "Envoys with a share",
        about: "Envoys that have traffic or may get it.",
        unit: "short",
      },
      { Envoys: newest("headgate_fleet_share_nodes", service) },
    ),
    lines(
      {
        title: "Gate of the fleet",
        about: "1 for the current state, and the ratio that should be refused.",
        unit: "none",
      },
      {
        "{{state}}": mostBy("state", "headgate_fleet_gate_state", service),
        "to be refused": newest("headgate_fleet_reject_probability", service),
      },
    ),
  ];
}

/** Returns the panels that the linearizer's article requires. */
function signal(policy: ServicePolicy): readonly Panel[] {
  const { name: service, concurrency } = policy;
  const settings = concurrency?.settings;
  const { min = 0, max = 0 } = settings?.limits ?? {};
  const linearizer = settings?.law === "signal" ? settings : undefined;
  const thresholds = concurrency?.signal?.thresholds ?? [];
  const named = thresholds.slice(0, keyPanelsMax);
  const readings = (marks: readonly Mark[], key?: string): Panel =>
    lines(
      {
        title: key === undefined ? "Reading" : `Reading of ${key}`,
        about: `Up to the lower line the limit is ${max}. From the upper line it is ${min}.`,
        unit: "short",
        marks,
      },
      {
        "{{key}}": `max by (key) (${own("headgate_signal_reading", {
          service,
          ...(key === undefined ? {} : { key }),
        })})`,
      },
    );
  return [
    readings(linearizer === undefined ? [] : marksOf(linearizer)),
    ...named.map(({ name, target, critical }) => readings(marksOf({ target, critical }), name)),
    lines(
      {
        title: "Capacity",
        about: "Maximum permits in use, by key, over all replicas.",
        unit: "short",
      },
      { "{{key}}": `sum by (key) (${own("headgate_admission_inflight_max", { service })})` },
    ),
    lines(
      {
        title: "Age of the reading",
        about: "Each replica polls on its own. Missing: no valid reading.",
        unit: "s",
        marks: [{ from: (concurrency?.signal?.staleAfterMs ?? 0) / 1_000, color: "red" }],
      },
      {
        "{{instance}}": mostBy("instance", "headgate_signal_age_seconds", service),
        missing: `max(${own("headgate_signal_missing", { service })})`,
      },
    ),
    lines(
      { title: "Questions", about: "Polls of the signal's source, by outcome.", unit: "reqps" },
      { "{{outcome}}": sumRate(own("headgate_signal_polls_total", { service }), ["outcome"]) },
    ),
  ];
}

function marksOf({
  target,
  critical,
}: {
  readonly target: number;
  readonly critical: number;
}): readonly Mark[] {
  return [
    { from: target, color: "orange" },
    { from: critical, color: "red" },
  ];
}

function atEnvoys(clusters: readonly string[]): readonly Panel[] {
  const cluster = clustersNamed(clusters);
  return [
    lines(
      {
        title: "In flight and remaining",
        about: "Over all Envoys; remaining is what their circuit breakers still admit.",
        unit: "short",
      },
      {
        "in flight": `sum(${envoys("envoy_cluster_upstream_rq_active", cluster)})`,
        room: `sum(${envoys("envoy_cluster_circuit_breakers_default_remaining_rq", cluster)})`,
      },
    ),
    stacked(
      { title: "Answers", about: "By status class.", unit: "reqps" },
      {
        "{{envoy_response_code_class}}xx": byClass(envoys("envoy_cluster_upstream_rq_xx", cluster)),
      },
    ),
    lines(
      { title: "Refused by circuit breakers", about: "Answered by Envoy itself.", unit: "reqps" },
      {
        requests: sumRate(envoys("envoy_cluster_upstream_rq_active_overflow", cluster)),
        "waiting for a connection": sumRate(
          envoys("envoy_cluster_upstream_rq_pending_overflow", cluster),
        ),
        retries: sumRate(envoys("envoy_cluster_upstream_rq_retry_overflow", cluster)),
      },
    ),
  ];
}
