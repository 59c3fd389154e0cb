import { isAtLeastVersion } from "../generate/base/generate-options.js";
import { announcedWaitMarginMs } from "../generate/envoy/http/ext-proc.js";
import { knowsPriorities, priorityFilterName } from "../generate/envoy/http/priority-header.js";
import { clusterNames } from "../policy/services/service-clusters.js";
import { type Asker, askerName, findAskers, isBeforeRouter } from "./askers.js";
import { isGuardSet } from "./envoy-runtime.js";
import { parseEnvoyVersion } from "./envoy-version.js";
import { type Evidence, type Examine, findingsOr, type Look } from "./look.js";
import { mapsAt, millisecondsAt, numberAt, shownName, textAt } from "./plain.js";

/** The breaker of a cluster that says nothing. Source: CircuitBreakers.Thresholds.max_requests. */
const usualRequestsMax = 1_024;

/** From which Envoy on streams can end without a reset. Source: Envoy's changelog. */
const gracefulVersion = { major: 1, minor: 34 };

const gracefulGuard = "envoy.reloadable_features.ext_proc_graceful_grpc_close";

/** Whether an ext_proc filter is set up as admission needs it. */
export const lookAtExtProc: Examine = (evidence) => {
  const askers = findAskers(evidence).filter(({ kind }) => kind === "extProc");
  if (askers.length === 0) return [];
  return [
    ...lookAtWaits(askers, evidence),
    ...lookAtGuard(evidence),
    ...lookAtModes(askers),
    ...lookAtBreakers(askers, evidence),
    ...lookAtPriorities(askers, evidence),
  ];
};

/** Above the message timeout, only the larger one that the filter allows counts. */
function lookAtWaits(askers: readonly Asker[], { policy, dump }: Evidence): readonly Look[] {
  const id = "HG524";
  if (policy === undefined) return [{ kind: "unseen", id, seen: "queues: name --policy" }];
  const here = policy.services.filter((service) =>
    clusterNames(service).some((name) => dump.clusters.has(name)),
  );
  const waits = here.map(({ name, admission }) => ({
    name,
    waitMs: admission?.queue?.waitMsMax ?? 0,
  }));
  const longest = waits.toSorted((a, b) => b.waitMs - a.waitMs)[0];
  if (longest === undefined || longest.waitMs === 0) return [];
  const neededMs = longest.waitMs + announcedWaitMarginMs;
  const findings = askers.flatMap((asker): readonly Look[] => {
    const allowedMs = millisecondsAt(asker.config, "max_message_timeout") ?? 0;
    if (allowedMs >= longest.waitMs) return [];
    const name = shownName(askerName(asker));
    const seen =
      `${shownName(longest.name)} queues for ${longest.waitMs} ms, and ${name} lets answers ` +
      `announce ${allowedMs} ms at most`;
    const todo = `max_message_timeout: ${neededMs / 1_000}s`;
    return [{ kind: "finding", id, severity: "error", seen, todo }];
  });
  return findingsOr(findings, { id, seen: `Envoy waits as long as queues: ${longest.waitMs} ms` });
}

function lookAtGuard(evidence: Evidence): readonly Look[] {
  const id = "HG525";
  const version = parseEnvoyVersion(evidence.envoyVersion);
  if (version !== undefined && !isAtLeastVersion(version, gracefulVersion)) return [];
  if (isGuardSet(evidence, gracefulGuard)) {
    return [{ kind: "pass", id, seen: "streams to ext_proc end without a reset" }];
  }
  return [
    {
      kind: "finding",
      id,
      severity: "warning",
      seen: `${gracefulGuard} is not set`,
      todo: `\
layered_runtime:
  layers:
  - name: static
    static_layer: {${gracefulGuard}: true}`,
    },
  ];
}

function lookAtModes(askers: readonly Asker[]): readonly Look[] {
  const findings = askers.flatMap((asker): readonly Look[] => {
    const mode = (name: string): string =>
      textAt(asker.config, "processing_mode", name) ?? "DEFAULT";
    const isSkipped = mode("response_header_mode") === "SKIP";
    if (mode("response_trailer_mode") === "SEND" && !isSkipped) return [];
    const name = shownName(askerName(asker));
    const seen = isSkipped
      ? `${name} does not send response headers: failures and latency are not seen`
      : `${name} does not send response trailers: places are given back at the headers`;
    const severity = isSkipped ? "error" : "warning";
    return [{ kind: "finding", id: "HG526", severity, seen }];
  });
  return findingsOr(findings, { id: "HG526", seen: "responses are followed to their end" });
}

function lookAtBreakers(askers: readonly Asker[], { dump }: Evidence): readonly Look[] {
  const clusters = [...new Set(askers.map(({ cluster }) => cluster))];
  const findings = clusters.flatMap((name): readonly Look[] => {
    const cluster = dump.clusters.get(name);
    if (cluster === undefined) return [];
    const limits = mapsAt(cluster, "circuit_breakers", "thresholds")
      .filter((one) => (textAt(one, "priority") ?? "DEFAULT") === "DEFAULT")
      .map((one) => numberAt(one, "max_requests") ?? usualRequestsMax);
    const most = limits[0] ?? usualRequestsMax;
    if (most > usualRequestsMax) return [];
    const seen = `${shownName(name)} lets ${most} streams in at once, and every request holds one`;
    const todo = "circuit_breakers: {thresholds: [{max_requests: 100000}]}";
    return [{ kind: "finding", id: "HG527", severity: "warning", seen, todo }];
  });
  return findingsOr(findings, { id: "HG527", seen: "its breaker leaves room for streams" });
}

/** Headgate believes no stranger; a filter that fails open, and services behind it, would. */
function lookAtPriorities(askers: readonly Asker[], { policy, dump }: Evidence): readonly Look[] {
  const id = "HG528";
  if (policy === undefined) return [{ kind: "unseen", id, seen: "trust: name --policy" }];
  const isTrustless = policy.services.some(
    (service) =>
      !service.priority.trust.anyone &&
      clusterNames(service).some((name) => dump.clusters.has(name)),
  );
  if (!isTrustless || !knowsPriorities(policy)) return [];
  const findings = askers.filter(isBeforeRouter).flatMap((asker): readonly Look[] => {
    const { chain, filter } = asker;
    const before = chain.filters.slice(0, chain.filters.indexOf(filter));
    const isRemoved = before.some(
      ({ name, isDisabled }) => name.startsWith(priorityFilterName) && !isDisabled,
    );
    if (isRemoved) return [];
    const seen = `nothing before ${shownName(askerName(asker))} removes callers' priority header`;
    return [{ kind: "finding", id, severity: "warning", seen }];
  });
  return findingsOr(findings, { id, seen: "priority headers of strangers are removed first" });
}
