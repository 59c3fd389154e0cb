import type { GeneratedPolicy } from "../base/generator.js";
import { isWatched } from "../envoy/http/telemetry.js";
import type { AlertRule } from "./alert.js";
import { counterTrial, gaugeTrial, steady } from "./alert-trials.js";
import type { AlertName } from "./alert-words.js";
import { by, grows } from "./promql.js";

/** Returns alerts on the feedback loop between replicas and Envoys that share a limit. */
export function loopAlerts({ services }: GeneratedPolicy): readonly AlertRule<AlertName>[] {
  if (!services.some(isWatched)) return [];
  const feedsBack = services.some(({ concurrency }) => (concurrency?.feedback.length ?? 0) > 0);
  return [...leaderAlerts, ...(feedsBack ? [...layerAlerts, ...problemAlerts] : problemAlerts)];
}

const leading = "headgate_fleet_leading";
const age = "headgate_fleet_snapshot_age_seconds";

const leaderAlerts: readonly AlertRule<AlertName>[] = [
  {
    alert: "HeadgateNoLeader",
    expr: `${by("max")} (${leading}) == 0`,
    forMinutes: 1,
    trial: gaugeTrial(leading, { raising: 0, quiet: 1 }),
  },
  {
    alert: "HeadgateSeveralLeaders",
    expr: `${by("sum")} (${leading}) > 1`,
    forMinutes: 1,
    trial: {
      raising: ["one", "two"].map((pod) => steady(leading, { pod }, 1)),
      labels: { job: "headgate" },
      quiet: [steady(leading, { pod: "one" }, 1), steady(leading, { pod: "two" }, 0)],
    },
  },
  {
    alert: "HeadgateFleetSnapshotStale",
    expr: `${by("max", ["instance"])} (${age}) > 5`,
    forMinutes: 1,
    trial: gaugeTrial(age, { raising: 9, quiet: 1 }, { alert: { instance: "a" } }),
  },
];

const streams = "headgate_control_node_streams";
const layers = "headgate_control_layers_total";

const layerAlerts: readonly AlertRule<AlertName>[] = [
  {
    alert: "HeadgateNoEnvoys",
    expr: `${by("sum")} (${streams}{stream="layers"}) == 0`,
    forMinutes: 5,
    trial: gaugeTrial(
      streams,
      { raising: 0, quiet: 2 },
      { series: { stream: "layers" }, alert: {} },
    ),
  },
  {
    alert: "HeadgateLayersRefused",
    expr: `${grows(`${layers}{event="refused"}`)} > 0`,
    forMinutes: 2,
    trial: counterTrial(layers, { series: { event: "refused" }, alert: {} }),
  },
];

const problemAlerts: readonly AlertRule<AlertName>[] = [
  problemAlert("HeadgateEnvoyProblems", "headgate_control_node_problems", "name_shared"),
  problemAlert("HeadgateServiceProblems", "headgate_control_service_problems", "no_cluster"),
];

function problemAlert(alert: AlertName, metric: string, problem: string): AlertRule<AlertName> {
  return {
    alert,
    expr: `${by("max", ["problem"])} (${metric}) > 0`,
    forMinutes: 5,
    trial: gaugeTrial(metric, { raising: 1, quiet: 0 }, { series: { problem } }),
  };
}
