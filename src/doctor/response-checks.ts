import { many } from "../core/base/many.js";
import { type Diagnostic, type DoctorCheck, type DoctorInput, findingsOr } from "./diagnostic.js";
import { type AskCounts, type EnvoyStats, extProcCounts, rateLimitCounts } from "./envoy-stats.js";
import { filterName, findHeadgateFilters, type HeadgateFilter } from "./headgate-filters.js";
import type { HeadgateView } from "./headgate-view.js";
import { mapAt, millisecondsAt, numberAt, shownName, textAt, valueAt } from "./json-access.js";

/** The share of missed answers that is an error, if it is measured over enough calls. */
const failedRatioMax = 0.01;

/**
 * Calls that measure this share without `--watch`. Counters cover the time since Envoy's start, so
 * the misses of a cold start have a large share of the first calls.
 */
const measuredCountMin = 1_000;

/** The share of missed answers that is an error however few calls there are. */
const brokenRatioMin = 0.5;

/**
 * How long an Envoy warms up, in seconds. Its first calls wait for connections, for cold code, or
 * for a Headgate that starts at the same time. Answers missed during `--watch` count nevertheless.
 */
const warmUpSeconds = 60;

/** Fewer missed answers than these are never an error. */
const failedCountMin = 5;

/** Envoy's timeout of a rate limit call if `timeout` is not set. Source: RateLimit.timeout. */
const defaultTimeoutMs = 20;

/** Longest timeout of a rate limit call without a warning. */
const timeoutMsMax = 1_000;

/** Shortest timeout without a warning: the default store budget, and the network. */
const timeoutMsMin = 12;

/** Checks whether Headgate answers, and in time. */
export const checkAnswers: DoctorCheck = (input) => {
  const filters = findHeadgateFilters(input);
  const limits = filters.filter(({ kind }) => kind === "ratelimit");
  return [
    ...checkHeadgate(input),
    ...checkFailures(filters, input),
    ...checkOverflows(filters, input),
    ...limits.flatMap((headgateFilter) => [
      checkTimeout(headgateFilter, input),
      ...checkShare(headgateFilter, input),
    ]),
  ];
};

function checkHeadgate({ headgate, headgateFailure, policy }: DoctorInput): readonly Diagnostic[] {
  if (headgateFailure !== undefined) {
    return [{ kind: "finding", id: "HG505", severity: "error", seen: headgateFailure }];
  }
  if (headgate === undefined) {
    const seen = "Headgate itself: set --headgate to its HTTP port";
    return [{ kind: "unseen", id: "HG505", seen }];
  }
  const diagnostics: Diagnostic[] = [...checkOwnState(headgate)];
  const { policyVersion } = headgate;
  if (policy === undefined || policyVersion === undefined) return diagnostics;
  const shown = shownName(policyVersion);
  const isSame = policyVersion === policy.version;
  diagnostics.push(
    isSame
      ? { kind: "pass", id: "HG511", seen: `Headgate runs this policy, ${shown}` }
      : {
          kind: "finding",
          id: "HG511",
          severity: "warning",
          seen: `Headgate runs ${shown}, and the file is ${policy.version}`,
        },
  );
  return diagnostics;
}

/** Checks what Headgate reports about its store and itself. */
export function checkOwnState(headgate: HeadgateView): readonly Diagnostic[] {
  return [...checkStore(headgate), ...checkStatus(headgate)];
}

function checkStore({ storeState }: HeadgateView): readonly Diagnostic[] {
  const id = "HG512";
  if (storeState === undefined) return [];
  if (storeState === "ok") return [{ kind: "pass", id, seen: "Headgate reaches its store" }];
  const seen = `/readyz reports that the store is ${shownName(storeState)}`;
  return [{ kind: "finding", id, severity: "error", seen }];
}

function checkStatus(headgate: HeadgateView): readonly Diagnostic[] {
  const { status, lastReloadProblem, storeState } = headgate;
  const id = "HG505";
  const shown = shownName(status ?? "nothing known");
  const seen = `/readyz reports ${shown}`;
  if (status === "ready") return [{ kind: "pass", id, seen }];
  if (status !== "degraded") return [{ kind: "finding", id, severity: "error", seen }];
  // The unavailable store, which has its own finding, explains it.
  if (!lastReloadProblem && storeState === "unavailable") return [];
  const why = lastReloadProblem ? ": the newest policy is invalid, or missing in the store" : "";
  return [{ kind: "finding", id, severity: "warning", seen: `${seen}${why}` }];
}

function checkFailures(
  filters: readonly HeadgateFilter[],
  input: DoctorInput,
): readonly Diagnostic[] {
  const { stats } = input;
  const rows = [
    { id: "HG520", kind: "ratelimit", count: rateLimitCounts, what: "rate limits" },
    { id: "HG521", kind: "extProc", count: extProcCounts, what: "admission" },
  ] as const;
  return rows.flatMap((row): readonly Diagnostic[] => {
    if (!filters.some(({ kind }) => kind === row.kind)) return [];
    const last = stats.at(-1);
    if (last === undefined) {
      return [{ kind: "unseen", id: row.id, seen: "missing answers: no statistics" }];
    }
    return [judgeFailures(row, row.count(last), input)];
  });
}

interface FailureRow {
  readonly id: "HG520" | "HG521";
  readonly what: string;
  readonly count: (stats: EnvoyStats) => AskCounts;
}

function judgeFailures(
  { id, what, count }: FailureRow,
  { answered, failed, letPass }: AskCounts,
  { stats, headgate }: DoctorInput,
): Diagnostic {
  const total = answered + failed;
  if (failed === 0) {
    return {
      kind: "pass",
      id,
      seen: `Envoy got ${many(answered, "answer")} from ${what}, and missed none`,
    };
  }
  const [first] = stats;
  const before = first === undefined || stats.length < 2 ? undefined : count(first);
  const recentFailed = Math.max(0, failed - (before?.failed ?? 0));
  const recentTotal = recentFailed + Math.max(0, answered - (before?.answered ?? 0));
  const uptimeSeconds = stats.at(-1)?.get("server.uptime") ?? Number.POSITIVE_INFINITY;
  const isWarming = before === undefined && uptimeSeconds < warmUpSeconds;
  const isMeasured = before !== undefined || recentTotal >= measuredCountMin;
  const parts = [
    `Envoy missed ${failed} of ${many(total, "answer")} from ${what} (${percent(failed / total)})`,
    `${many(letPass, "request")} passed without one`,
    ...(before === undefined ? [] : [`${recentFailed} of them during --watch`]),
    ...(isWarming ? [`Envoy started ${uptimeSeconds} s ago`] : []),
    ...(before === undefined ? ["--watch 10s shows whether this continues"] : []),
    ...(headgate === undefined ? [] : [ownCounts(id, headgate)]),
  ];
  const ratioMin = isMeasured ? failedRatioMax : brokenRatioMin;
  const isMuch = recentFailed >= failedCountMin && recentFailed / recentTotal >= ratioMin;
  const severity = isMuch && !isWarming ? "error" : "warning";
  return { kind: "finding", id, severity, seen: parts.join("; ") };
}

/** Headgate's own counts, which do not include late and lost answers. */
function ownCounts(id: "HG520" | "HG521", { totals }: HeadgateView): string {
  const of = (name: string): number => totals.get(name) ?? 0;
  if (id === "HG520") {
    const [answers, failures] = [
      of("headgate_requests_total"),
      of("headgate_failed_requests_total"),
    ];
    return `Headgate counts ${many(answers, "answer")} and ${many(failures, "failure")}`;
  }
  const [streams, faults] = [
    of("headgate_ext_proc_streams_total"),
    of("headgate_exchange_faults_total"),
  ];
  return `Headgate counts ${many(streams, "stream")} and ${many(faults, "fault")}`;
}

function percent(ratio: number): string {
  return `${(ratio * 100).toFixed(ratio < 0.1 ? 2 : 1)} %`;
}

function checkOverflows(
  filters: readonly HeadgateFilter[],
  { stats }: DoctorInput,
): readonly Diagnostic[] {
  const last = stats.at(-1);
  if (last === undefined || filters.length === 0) return [];
  const clusters = [...new Set(filters.map(({ cluster }) => cluster))];
  const findings = clusters.flatMap((cluster): readonly Diagnostic[] => {
    const of = (name: string): number => last.get(`cluster.${cluster}.${name}`) ?? 0;
    const [active, pending] = [
      of("upstream_rq_active_overflow"),
      of("upstream_rq_pending_overflow"),
    ];
    if (active + pending === 0) return [];
    const seen = `the breaker of ${shownName(cluster)} refused ${many(active + pending, "call")}`;
    return [{ kind: "finding", id: "HG522", severity: "error", seen }];
  });
  return findingsOr(findings, { id: "HG522", seen: "no breaker refused a call to Headgate" });
}

function checkTimeout(headgateFilter: HeadgateFilter, { headgate }: DoctorInput): Diagnostic {
  const id = "HG523";
  const timeoutMs = millisecondsAt(headgateFilter.config, "timeout") ?? defaultTimeoutMs;
  const name = shownName(filterName(headgateFilter));
  const reported = { kind: "finding", id, severity: "warning" } as const;
  if (timeoutMs === 0) {
    return { ...reported, severity: "error", seen: `${name} waits forever (timeout: 0s)` };
  }
  if (timeoutMs > timeoutMsMax) {
    return { ...reported, seen: `${name} waits up to ${timeoutMs} ms, and so do requests` };
  }
  const neededMs = headgate?.decisionMsP99;
  if (timeoutMs < timeoutMsMin || (neededMs !== undefined && neededMs > timeoutMs)) {
    const needed = neededMs === undefined ? "" : `; p99 of decisions is at most ${neededMs} ms`;
    const budget = "HEADGATE_STORE_BUDGET_MS is 10 by default";
    return { ...reported, seen: `${name} waits up to ${timeoutMs} ms${needed}; ${budget}` };
  }
  return { kind: "pass", id, seen: `${name} waits up to ${timeoutMs} ms` };
}

/**
 * Runtime keys take precedence over the configuration. Source: RateLimit.filter_enabled,
 * filter_enforced.
 */
function checkShare(
  headgateFilter: HeadgateFilter,
  { runtime }: DoctorInput,
): readonly Diagnostic[] {
  const rows = [
    ["filter_enabled", "ratelimit.http_filter_enabled", "checked"],
    ["filter_enforced", "ratelimit.http_filter_enforcing", "enforced"],
  ] as const;
  const findings = rows.flatMap(([field, defaultKey, what]): readonly Diagnostic[] => {
    const key = textAt(headgateFilter.config, field, "runtime_key") ?? defaultKey;
    const percentOf = shareOf(headgateFilter, {
      field,
      set: numberAt(runtime, "entries", key, "final_value"),
    });
    if (percentOf >= 100) return [];
    const name = shownName(filterName(headgateFilter));
    const seen = `${name} is ${what} for ${percentOf} % of requests (${shownName(key)})`;
    return [{ kind: "finding", id: "HG510", severity: "warning", seen }];
  });
  return findingsOr(findings, { id: "HG510", seen: "checked and enforced for all requests" });
}

const denominators: Readonly<Record<string, number>> = { TEN_THOUSAND: 100, MILLION: 10_000 };

/** In percent. */
function shareOf(
  { config }: HeadgateFilter,
  { field, set }: { readonly field: string; readonly set: number | undefined },
): number {
  if (set !== undefined) return set;
  if (valueAt(config, field) === undefined) return 100;
  const fraction = mapAt(config, field, "default_value");
  const numerator = numberAt(fraction, "numerator") ?? 0;
  return numerator / (denominators[textAt(fraction, "denominator") ?? ""] ?? 1);
}
