import { concurrencyLaws } from "../../core/concurrency/concurrency-laws.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import type { Panel } from "./dashboard.js";
import { lines, own, stacked, sumBy, sumRate } from "./panels.js";

/** Returns the maximum over the replicas, by a label. */
export function mostBy(label: string, metric: string, service: string): string {
  return `max by (${label}) (${own(metric, { service })})`;
}

/** Returns the 95th percentile of a histogram. */
function mostOf(histogram: string, service: string): string {
  return `histogram_quantile(0.95, ${sumRate(own(`${histogram}_bucket`, { service }), ["le"])})`;
}

/** Returns the series of admission decisions for a service. */
export function decided(service: string, more: Readonly<Record<string, string>>): string {
  return own("headgate_admission_decisions_total", { service, ...more });
}

/** Returns panels of admitted and refused requests, and of the causes of refusals. */
export function admissionPanels({ name: service, admission }: ServicePolicy): readonly Panel[] {
  const refused = decided(service, { decision: "refused", dry_run: "false" });
  const panels: Panel[] = [
    stacked(
      { title: "Admitted", about: "By class.", unit: "reqps" },
      { "{{priority}}": sumRate(decided(service, { decision: "admitted" }), ["priority"]) },
    ),
    stacked(
      { title: "Refused by class", about: "Low priority first, critical last.", unit: "reqps" },
      { "{{priority}}": sumRate(refused, ["priority"]) },
    ),
    stacked(
      { title: "Refused by cause", about: "The check that refused them.", unit: "reqps" },
      { "{{cause}}": sumRate(refused, ["cause"]) },
    ),
    lines(
      { title: "How requests ended", about: "Requests that held a permit.", unit: "reqps" },
      {
        "{{outcome}}": sumRate(own("headgate_admission_outcomes_total", { service }), ["outcome"]),
        "caller gave up": sumRate(own("headgate_admission_client_cancelled_total", { service })),
        bypassed: sumRate(own("headgate_admission_bypassed_total", { service })),
      },
    ),
    lines(
      {
        title: "Load",
        about: "Each known load signal; 1 is full.",
        unit: "percentunit",
        marks: [{ from: 1, color: "red" }],
      },
      { "{{signal}}": mostBy("signal", "headgate_admission_load_ratio", service) },
    ),
  ];
  if (admission?.dryRun.size) {
    panels.push(
      stacked(
        { title: "Would be refused", about: "By checks in dry run.", unit: "reqps" },
        {
          "{{cause}}": sumRate(decided(service, { decision: "refused", dry_run: "true" }), [
            "cause",
          ]),
        },
      ),
    );
  }
  return [...panels, ...walls({ service, admission })];
}

/** Returns panels of the checks before the permits, if the policy has them. */
function walls({
  service,
  admission,
}: {
  readonly service: string;
  readonly admission: ServicePolicy["admission"];
}): readonly Panel[] {
  const panels: Panel[] = [];
  if (admission?.gate !== undefined) {
    panels.push(
      lines(
        {
          title: "Gate",
          about:
            "1 for the current state, the admitted ratio, and the expected reject probability.",
          unit: "percentunit",
        },
        {
          "{{state}}": mostBy("state", "headgate_admission_gate_state", service),
          admits: `min(${own("headgate_admission_gate_pass_ratio", { service })})`,
          "{{threshold}}": mostBy("threshold", "headgate_admission_gate_threshold_ratio", service),
        },
      ),
    );
  }
  if (admission?.estimatedWait?.sigmoid !== undefined) {
    panels.push(
      lines(
        {
          title: "Expected wait",
          about: "The ratio of requests that it would refuse.",
          unit: "percentunit",
        },
        {
          "{{instance}}": mostBy("instance", "headgate_admission_reject_probability", service),
        },
      ),
    );
  }
  if (admission?.throttle !== undefined) {
    panels.push(
      lines(
        { title: "Throttle", about: "The ratio of requests that it refuses.", unit: "percentunit" },
        {
          "{{instance}}": mostBy("instance", "headgate_admission_throttle_probability", service),
        },
      ),
    );
  }
  return panels;
}

/** Returns panels of a service's permits, and of requests that wait for one. */
export function permitPanels({
  name: service,
  concurrency,
  admission,
}: ServicePolicy): readonly Panel[] {
  const sums = sumBy(["key"]);
  const panels: Panel[] = [
    lines(
      {
        title: "Permits in use",
        about: "Over all replicas, by key if the limit is split.",
        unit: "short",
      },
      {
        "in use {{key}}": `${sums}(${own("headgate_admission_inflight", { service })})`,
        "at most {{key}}": `${sums}(${own("headgate_admission_inflight_max", { service })}) < Inf`,
      },
    ),
    lines(
      { title: "Capacity", about: "Permits of a replica: 95th percentile.", unit: "short" },
      {
        p95: mostOf("headgate_admission_capacity", service),
      },
    ),
  ];
  if (admission?.queue !== undefined) panels.push(...queue(service, sums));
  const law = concurrency?.settings.law;
  if (law !== undefined && concurrencyLaws[law].learnsFrom !== "nothing") {
    panels.push(
      lines(
        { title: "Values of the law", about: "By the names that the law uses.", unit: "none" },
        {
          "{{fact}} {{key}}": `avg by (fact, key) (${own("headgate_admission_law", { service })})`,
        },
      ),
    );
  }
  return panels;
}

function queue(service: string, sums: string): readonly Panel[] {
  const waits = "headgate_admission_wait_seconds";
  const count = sumRate(own(`${waits}_count`, { service }));
  return [
    lines(
      { title: "Waiting", about: "Requests that wait for a permit.", unit: "short" },
      { "waiting {{key}}": `${sums}(${own("headgate_admission_queue_depth", { service })})` },
    ),
    lines(
      { title: "Wait", about: "Of requests that were admitted from the queue.", unit: "s" },
      {
        mean: `${sumRate(own(`${waits}_sum`, { service }))} / ${count}`,
        p95: mostOf(waits, service),
      },
    ),
    lines(
      {
        title: "Waited for more than 100 ms",
        about: "The ratio of requests admitted from the queue.",
        unit: "percentunit",
        marks: [{ from: 0.05, color: "red" }],
      },
      { share: `1 - ${sumRate(own(`${waits}_bucket`, { service, le: "0.1" }))} / ${count}` },
    ),
  ];
}
