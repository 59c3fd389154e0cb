import { isAtLeastVersion } from "../generate/base/generate-options.js";
import { isPlainMap, type PlainValue } from "../generate/base/plain-tree.js";
import { announcedWaitMarginMs } from "../generate/envoy/http/ext-proc.js";
import { knowsPriorities, priorityFilterName } from "../generate/envoy/http/priority-header.js";
import { clusterNames } from "../policy/services/service-clusters.js";
import { serviceWaits } from "../policy/services/service-waits.js";
import { type Diagnostic, type DoctorCheck, type DoctorInput, findingsOr } from "./diagnostic.js";
import {
  filterName,
  findHeadgateFilters,
  type HeadgateFilter,
  isBeforeRouter,
} from "./headgate-filters.js";
import {
  isTrueAt,
  mapsAt,
  millisecondsAt,
  numberAt,
  shownName,
  textAt,
  valueAt,
} from "./json-access.js";
import { parseEnvoyVersion } from "./side-checks.js";

/** Default breaker of a cluster. Source: CircuitBreakers.Thresholds.max_requests. */
const defaultRequestsMax = 1_024;

/** First Envoy version in which streams can end without a reset. Source: Envoy's changelog. */
const gracefulVersion = { major: 1, minor: 34 };

const gracefulGuard = "envoy.reloadable_features.ext_proc_graceful_grpc_close";

/** Checks whether an ext_proc filter is configured as admission requires. */
export const checkExtProc: DoctorCheck = (input) => {
  const filters = findHeadgateFilters(input).filter(({ kind }) => kind === "extProc");
  if (filters.length === 0) return [];
  return [
    ...checkWaits(filters, input),
    ...checkGuard(input),
    ...checkModes(filters),
    ...checkBreakers(filters, input),
    ...checkPriorities(filters, input),
  ];
};

/** If a wait exceeds the message timeout, the maximum timeout that the filter allows applies. */
function checkWaits(
  filters: readonly HeadgateFilter[],
  { policy, dump }: DoctorInput,
): readonly Diagnostic[] {
  const id = "HG524";
  if (policy === undefined) return [{ kind: "unseen", id, seen: "waits: set --policy" }];
  const here = policy.services.filter((service) =>
    clusterNames(service).some((name) => dump.clusters.has(name)),
  );
  const waitOf = serviceWaits(policy.rules);
  const waits = here.map((service) => ({ name: service.name, waitMs: waitOf(service) }));
  const longest = waits.toSorted((a, b) => b.waitMs - a.waitMs)[0];
  if (longest === undefined || longest.waitMs === 0) return [];
  const neededMs = longest.waitMs + announcedWaitMarginMs;
  const findings = filters.flatMap((headgateFilter): readonly Diagnostic[] => {
    const allowedMs = millisecondsAt(headgateFilter.config, "max_message_timeout") ?? 0;
    if (allowedMs >= longest.waitMs) return [];
    const name = shownName(filterName(headgateFilter));
    const seen =
      `${shownName(longest.name)} holds requests for up to ${longest.waitMs} ms, and ` +
      `${name} allows at most ${allowedMs} ms`;
    const todo = `max_message_timeout: ${neededMs / 1_000}s`;
    return [{ kind: "finding", id, severity: "error", seen, todo }];
  });
  return findingsOr(findings, {
    id,
    seen: `Envoy's timeout covers the waits of requests: ${longest.waitMs} ms`,
  });
}

function checkGuard(input: DoctorInput): readonly Diagnostic[] {
  const id = "HG525";
  const version = parseEnvoyVersion(input.envoyVersion);
  if (version !== undefined && !isAtLeastVersion(version, gracefulVersion)) return [];
  if (isGuardSet(input, gracefulGuard)) {
    return [{ kind: "pass", id, seen: "ext_proc streams end without a reset" }];
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

function checkModes(filters: readonly HeadgateFilter[]): readonly Diagnostic[] {
  const findings = filters.flatMap((headgateFilter): readonly Diagnostic[] => {
    const mode = (name: string): string =>
      textAt(headgateFilter.config, "processing_mode", name) ?? "DEFAULT";
    const isSkipped = mode("response_header_mode") === "SKIP";
    if (mode("response_trailer_mode") === "SEND" && !isSkipped) return [];
    const name = shownName(filterName(headgateFilter));
    const seen = isSkipped
      ? `${name} does not send response headers, so failures and latency are unknown`
      : `${name} does not send response trailers, so permits are released at the headers`;
    const severity = isSkipped ? "error" : "warning";
    return [{ kind: "finding", id: "HG526", severity, seen }];
  });
  return findingsOr(findings, { id: "HG526", seen: "responses are observed to their end" });
}

function checkBreakers(
  filters: readonly HeadgateFilter[],
  { dump }: DoctorInput,
): readonly Diagnostic[] {
  const clusters = [...new Set(filters.map(({ cluster }) => cluster))];
  const findings = clusters.flatMap((name): readonly Diagnostic[] => {
    const cluster = dump.clusters.get(name);
    if (cluster === undefined) return [];
    const limits = mapsAt(cluster, "circuit_breakers", "thresholds")
      .filter((one) => (textAt(one, "priority") ?? "DEFAULT") === "DEFAULT")
      .map((one) => numberAt(one, "max_requests") ?? defaultRequestsMax);
    const most = limits[0] ?? defaultRequestsMax;
    if (most > defaultRequestsMax) return [];
    const seen = `${shownName(name)} allows ${most} streams at once, and every request holds one`;
    const todo = "circuit_breakers: {thresholds: [{max_requests: 100000}]}";
    return [{ kind: "finding", id: "HG527", severity: "warning", seen, todo }];
  });
  return findingsOr(findings, { id: "HG527", seen: "its breaker has room for streams" });
}

/** Headgate ignores untrusted headers, but a filter that fails open passes them to services. */
function checkPriorities(
  filters: readonly HeadgateFilter[],
  { policy, dump }: DoctorInput,
): readonly Diagnostic[] {
  const id = "HG528";
  if (policy === undefined) return [{ kind: "unseen", id, seen: "trust: set --policy" }];
  const isTrustless = policy.services.some(
    (service) =>
      !service.priority.trust.anyone &&
      clusterNames(service).some((name) => dump.clusters.has(name)),
  );
  if (!isTrustless || !knowsPriorities(policy)) return [];
  const findings = filters
    .filter(isBeforeRouter)
    .flatMap((headgateFilter): readonly Diagnostic[] => {
      const { chain, filter } = headgateFilter;
      const before = chain.filters.slice(0, chain.filters.indexOf(filter));
      const isRemoved = before.some(
        ({ name, isDisabled }) => name.startsWith(priorityFilterName) && !isDisabled,
      );
      if (isRemoved) return [];
      const name = shownName(filterName(headgateFilter));
      const seen = `nothing before ${name} removes the callers' priority header`;
      return [{ kind: "finding", id, severity: "warning", seen }];
    });
  return findingsOr(findings, {
    id,
    seen: "priority headers of untrusted callers are removed first",
  });
}

/** Reports whether a runtime guard is on, according to /runtime or a static layer. */
function isGuardSet({ runtime, dump }: DoctorInput, guard: string): boolean {
  const final = valueAt(runtime, "entries", guard, "final_value");
  if (final !== undefined) return final === "true" || final === true;
  const layers = mapsAt(dump.bootstrap, "layered_runtime", "layers");
  return layers.some((layer) => isSetIn(valueAt(layer, "static_layer"), guard));
}

/** Keys of a layer are either whole, or nested at their dots. */
function isSetIn(layer: PlainValue | undefined, guard: string): boolean {
  if (!isPlainMap(layer)) return false;
  if (isTrueAt(layer, guard)) return true;
  return isTrueAt(layer, ...guard.split("."));
}
