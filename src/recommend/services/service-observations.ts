import { type CurvePoint, LatencyCurve } from "./latency-curve.js";

/** Median and 99th percentile of latency, in milliseconds. */
export interface LatencyQuantiles {
  readonly p50: number;
  readonly p99: number;
}

/** Maximum values that Envoys reported. Each is undefined if no Envoy reported it. */
export interface EnvoyPeaks {
  /** Maximum of connections and waiting requests of one proxy for the service. */
  readonly connections?: number | undefined;
  readonly pendingRequests?: number | undefined;
  /** Totals of one proxy. */
  readonly heapBytes?: number | undefined;
  readonly downstreamConnections?: number | undefined;
}

/** Observations of one service, from any source. */
export interface ServiceObservations {
  readonly service: string;
  /** Name of the source in sentences: `the access log`, `Prometheus`, `the fleet`. */
  readonly source: string;
  /** Mean latency by requests in flight. */
  readonly curve: readonly CurvePoint[];
  readonly requestCount: number;
  readonly durationSeconds: number;
  /** The highest mean of ten seconds, or of one step of the source if it is longer. */
  readonly perSecondMax: number;
  readonly inFlightMax: number;
  /** Failed requests as a ratio of all. Undefined: the source does not report it. */
  readonly errorRatio: number | undefined;
  /** Returns quantiles of requests with at most `levelMax` in flight. Undefined: unknown. */
  readonly quantiles: (levelMax: number) => LatencyQuantiles | undefined;
  /** Limit in effect. Undefined: none, or unknown. */
  readonly limit: number | undefined;
  readonly envoy: EnvoyPeaks;
  /** Sentences about data that was left out. */
  readonly notes: readonly string[];
}

/** Means of a short time. Two of the first three are required: Little's law gives the third. */
export interface LoadWindow {
  readonly startMs: number;
  readonly lengthMs: number;
  /** Mean number of requests in flight. */
  readonly inFlight?: number | undefined;
  /** Requests that ended, per second. */
  readonly perSecond?: number | undefined;
  readonly latencyMs?: number | undefined;
  readonly p50Ms?: number | undefined;
  readonly p99Ms?: number | undefined;
  /** Failed requests per second. */
  readonly errorsPerSecond?: number | undefined;
  readonly limit?: number | undefined;
}

/** Minimum mean of requests in flight for a window to be informative about load. */
const levelMin = 0.01;

/** Derives observations from means of short times, in any order. */
export function observeWindows(
  { service, source }: Pick<ServiceObservations, "service" | "source">,
  { windows, envoy = {} }: { readonly windows: readonly LoadWindow[]; readonly envoy?: EnvoyPeaks },
): ServiceObservations {
  const curve = new LatencyCurve();
  const full = windows.flatMap((window) => {
    const completed = complete(window);
    return completed === undefined ? [] : [completed];
  });
  // A mean below 1 comes from idle times: each request was alone, at level 1.
  for (const { inFlight, latencyMs } of full) {
    curve.add({ level: Math.max(1, inFlight), latencyMs });
  }
  const requests = full.reduce((sum, one) => sum + (one.perSecond * one.lengthMs) / 1_000, 0);
  const reported = full.filter(({ errorsPerSecond }) => errorsPerSecond !== undefined);
  const reportedRequests = reported.reduce((sum, one) => sum + one.perSecond * one.lengthMs, 0);
  const errors = reported.reduce((sum, one) => sum + (one.errorsPerSecond ?? 0) * one.lengthMs, 0);
  const skipped = windows.length - full.length;
  return {
    service,
    source,
    curve: curve.points(),
    requestCount: Math.round(requests),
    durationSeconds: full.reduce((sum, { lengthMs }) => sum + lengthMs / 1_000, 0),
    perSecondMax: Math.max(0, ...full.map(({ perSecond }) => perSecond)),
    inFlightMax: Math.max(0, ...full.map(({ inFlight }) => inFlight)),
    errorRatio: reportedRequests > 0 ? Math.min(1, errors / reportedRequests) : undefined,
    quantiles: (levelMax) => typicalQuantiles(full.filter((one) => one.inFlight <= levelMax)),
    limit: full.findLast(({ limit }) => limit !== undefined && limit > 0)?.limit,
    envoy,
    notes: skipped === 0 ? [] : [`${skipped} of ${windows.length} steps had no requests.`],
  };
}

type FullWindow = LoadWindow &
  Required<Pick<LoadWindow, "lengthMs">> & {
    readonly inFlight: number;
    readonly perSecond: number;
    readonly latencyMs: number;
  };

/** Adds the value from Little's law: `inFlight = perSecond * latency`. Undefined if idle. */
function complete(window: LoadWindow): FullWindow | undefined {
  const { inFlight, perSecond, latencyMs } = window;
  const full = {
    ...window,
    inFlight: inFlight ?? ((perSecond ?? Number.NaN) * (latencyMs ?? Number.NaN)) / 1_000,
    perSecond: perSecond ?? (1_000 * (inFlight ?? Number.NaN)) / (latencyMs ?? Number.NaN),
    latencyMs: latencyMs ?? (1_000 * (inFlight ?? Number.NaN)) / (perSecond ?? Number.NaN),
  };
  const isWhole = [full.inFlight, full.perSecond, full.latencyMs].every(Number.isFinite);
  return isWhole && full.inFlight >= levelMin && full.perSecond > 0 ? full : undefined;
}

/** Returns the median of the windows' quantiles, so that one bad minute has no influence. */
function typicalQuantiles(windows: readonly LoadWindow[]): LatencyQuantiles | undefined {
  const [p50, p99] = [
    median(windows.flatMap(({ p50Ms }) => (p50Ms === undefined ? [] : [p50Ms]))),
    median(windows.flatMap(({ p99Ms }) => (p99Ms === undefined ? [] : [p99Ms]))),
  ];
  return p50 === undefined || p99 === undefined ? undefined : { p50, p99 };
}

function median(values: readonly number[]): number | undefined {
  const finite = values.filter(Number.isFinite).toSorted((one, other) => one - other);
  return finite[Math.floor(finite.length / 2)];
}
