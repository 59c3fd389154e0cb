import type { QueryRange } from "./prometheus-answers.js";
import type { LoadWindow } from "./service-observations.js";

/** Measures of a service over time, each in one series. */
export const serviceMeasures = [
  "perSecond",
  "latencyMs",
  "inFlight",
  "p50Ms",
  "p99Ms",
  "errorsPerSecond",
  "limit",
] as const;

/** One of these measures. */
export type ServiceMeasure = (typeof serviceMeasures)[number];

/** Series of a service. */
export type ServiceSeries = Readonly<Record<ServiceMeasure, readonly number[]>>;

/**
 * Returns series as means of short times. If Envoy reports latencies, the requests in flight are
 * derived from them by Little's law: its histogram counts all requests, while a gauge is only
 * sampled at intervals.
 */
export function windowsOfSeries(
  series: ServiceSeries,
  { startMs, stepMs }: QueryRange,
): readonly LoadWindow[] {
  const hasLatency = series.latencyMs.some(Number.isFinite);
  return series.perSecond.map((_, i) => {
    const at = (measure: ServiceMeasure): number | undefined => {
      const value = series[measure][i];
      return value === undefined || !(value >= 0) ? undefined : value;
    };
    return {
      startMs: startMs + (i - 1) * stepMs,
      lengthMs: stepMs,
      perSecond: at("perSecond"),
      latencyMs: at("latencyMs"),
      inFlight: hasLatency ? undefined : at("inFlight"),
      p50Ms: at("p50Ms"),
      p99Ms: at("p99Ms"),
      errorsPerSecond: at("errorsPerSecond"),
      limit: at("limit"),
    };
  });
}
