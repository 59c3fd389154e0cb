import { many } from "../core/base/many.js";
import { runtimeLayerName } from "../core/feedback/runtime-keys.js";
import { drivesProxies } from "../generate/envoy/http/layered-runtime.js";
import { isWatched } from "../generate/envoy/http/telemetry.js";
import { clusterNames } from "../policy/services/service-clusters.js";
import type { ServicePolicy } from "../policy/services/service-policy.js";
import { type Diagnostic, type DoctorCheck, type DoctorInput, findingsOr } from "./diagnostic.js";
import { isOfType, mapAt, mapsAt, shownName, textAt } from "./json-access.js";

/** A layer is renewed several times in this period. After it, Envoys discard the layer. */
const layerAgeMsMax = 20_000;

const sinkType = "envoy.config.metrics.v3.MetricsServiceConfig";

/** Checks whether Envoy gets what Headgate sends, and reports what Headgate needs. */
export const checkLoop: DoctorCheck = (input) => {
  const { policy, dump } = input;
  if (policy === undefined) {
    return [{ kind: "unseen", id: "HG540", seen: "the feedback loop: set --policy" }];
  }
  const here = policy.services.filter((service) =>
    clusterNames(service).some((name) => dump.clusters.has(name)),
  );
  return [
    ...(drivesProxies({ ...policy, services: here }) ? checkLayer(input) : []),
    ...(here.some(isWatched) ? checkSink(here.filter(isWatched), input) : []),
  ];
};

function checkLayer(input: DoctorInput): readonly Diagnostic[] {
  const { dump } = input;
  const layers = mapsAt(dump.bootstrap, "layered_runtime", "layers");
  const layer = layers.find((one) => textAt(one, "rtds_layer", "name") === runtimeLayerName);
  if (layer === undefined) {
    const names = layers.map((one) => shownName(textAt(one, "name") ?? "?")).join(", ");
    const seen = `layers: ${names || "none"}; none uses RTDS for "${runtimeLayerName}"`;
    return [{ kind: "finding", id: "HG540", severity: "error", seen }];
  }
  const isAds = mapAt(layer, "rtds_layer", "rtds_config", "ads") !== undefined;
  return [
    { kind: "pass", id: "HG540", seen: `the layer "${runtimeLayerName}" exists` },
    ...checkConnection(isAds ? "control_plane" : "runtime.control_plane", input),
    ...checkAge(input),
  ];
}

function checkConnection(prefix: string, { stats }: DoctorInput): readonly Diagnostic[] {
  const id = "HG541";
  const state = stats.at(-1)?.get(`${prefix}.connected_state`);
  const name = `${prefix}.connected_state`;
  if (state === undefined) return [{ kind: "unseen", id, seen: `${name}: no such statistic` }];
  if (state === 1) return [{ kind: "pass", id, seen: "connected for it" }];
  return [{ kind: "finding", id, severity: "error", seen: `${name} is ${state}` }];
}

function checkAge({ stats, envoyNowMs }: DoctorInput): readonly Diagnostic[] {
  const id = "HG542";
  const updatedMs = stats.at(-1)?.get("runtime.update_time");
  const rejected = stats.at(-1)?.get("runtime.update_rejected") ?? 0;
  if (rejected > 0) {
    const seen = `Envoy has rejected ${many(rejected, "update")} of its runtime`;
    return [{ kind: "finding", id, severity: "warning", seen }];
  }
  if (updatedMs === undefined || envoyNowMs === undefined) {
    return [{ kind: "unseen", id, seen: "runtime.update_time: unknown" }];
  }
  if (updatedMs === 0) {
    const seen = "no layer has arrived yet";
    return [{ kind: "finding", id, severity: "error", seen }];
  }
  const ageMs = envoyNowMs - updatedMs;
  const seen = `the last layer arrived ${Math.max(0, ageMs / 1_000).toFixed(1)} s ago`;
  if (ageMs <= layerAgeMsMax) return [{ kind: "pass", id, seen }];
  return [{ kind: "finding", id, severity: "error", seen }];
}

function checkSink(watched: readonly ServicePolicy[], input: DoctorInput): readonly Diagnostic[] {
  const { dump } = input;
  const sinks = mapsAt(dump.bootstrap, "stats_sinks");
  const isThere = sinks.some((sink) => isOfType(mapAt(sink, "typed_config"), sinkType));
  if (!isThere) {
    const names = watched.map(({ name }) => shownName(name)).join(", ");
    const seen = `there is no metrics_service sink, and ${names} learns from Envoy's statistics`;
    return [{ kind: "finding", id: "HG543", severity: "error", seen }];
  }
  return [
    { kind: "pass", id: "HG543", seen: "statistics go to a metrics_service" },
    ...checkMatcher(watched, input),
  ];
}

/** This gauge exists from the start, unlike counters, which appear with their first event. */
function checkMatcher(
  watched: readonly ServicePolicy[],
  { dump, stats }: DoctorInput,
): readonly Diagnostic[] {
  const last = stats.at(-1);
  if (last === undefined) {
    return [
      { kind: "unseen", id: "HG544", seen: "the statistics that the matcher allows: unknown" },
    ];
  }
  const clusters = watched.flatMap(clusterNames).filter((name) => dump.clusters.has(name));
  const findings = clusters.flatMap((name): readonly Diagnostic[] => {
    const stat = `cluster.${name}.upstream_rq_active`;
    if (last.has(stat)) return [];
    const seen = `${shownName(stat)} is not sent`;
    return [{ kind: "finding", id: "HG544", severity: "error", seen }];
  });
  return findingsOr(findings, {
    id: "HG544",
    seen: "Envoy sends the statistics that Headgate reads",
  });
}
