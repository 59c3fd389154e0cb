import { type CurvePoint, pointSamplesMin } from "./latency-curve.js";
import { type Basis, fitNonNegative, type WeightedPoint } from "./least-squares.js";

/** A curve fitted to latency over requests in flight. */
export interface LatencyFit {
  /** `twoSegments`: up to the knee, no request waits. `usl`: throughput falls beyond a peak. */
  readonly model: "twoSegments" | "usl";
  /** Number of requests in flight beyond which additional ones do not raise throughput. */
  readonly knee: number;
  /** Range of plausible knees. */
  readonly kneeMin: number;
  readonly kneeMax: number;
  /** The throughput at the knee. */
  readonly perSecondMax: number;
  /** The latency with one request in flight. */
  readonly baseMs: number;
  /** Typical distance of measured latencies from the curve, as a ratio of them. */
  readonly residualRatio: number;
  /** The latency of the curve at a level, in milliseconds. */
  readonly latencyMs: (level: number) => number;
}

/** Whether the measured latencies show a knee. */
export type KneeVerdict =
  | { readonly kind: "seen"; readonly fit: LatencyFit }
  /** Throughput still rose at the highest level. */
  | { readonly kind: "below"; readonly levelMax: number; readonly riseRatio: number }
  /** Throughput was already the same at the lowest level. */
  | { readonly kind: "saturated"; readonly levelMin: number; readonly perSecond: number }
  /** Latency depends on something other than the load. */
  | { readonly kind: "scattered"; readonly residualRatio: number }
  | { readonly kind: "few"; readonly levelCount: number };

/** Minimum number of levels for a curve, since three numbers are fitted. */
export const levelCountMin = 6;

/** Minimum evidence for a knee over a curve without one: F with one degree of freedom. */
const evidenceMin = 20;

/** Minimum squared error of a point, so that data without noise is not taken as evidence. */
const squaredErrorMin = 1e-3;

/** Measurements must reach at least this factor times the knee. */
const beyondRatio = 1.25;

/** From this residual ratio on, latency is not a function of the load. */
const residualRatioMax = 0.3;

/**
 * Part of a small rise in flight that becomes throughput. Up to `grownRatio`, throughput no longer
 * grows. If the curve has no corner, the knee is where this part falls to `kneeGrowthRatio`.
 */
const grownRatio = 0.1;
const kneeGrowthRatio = 0.2;

/** A level below this counts as a single request in flight. */
const aloneMax = 1.5;

/** Number of candidate knees between the lowest and the highest level. */
const kneeCandidates = 200;

type Candidate = Omit<LatencyFit, "residualRatio"> & { readonly squaredError: number };

const one: Basis = () => 1;
const others: Basis = (level) => level - 1;

/**
 * Looks for the knee in mean latencies by requests in flight. Two curves are fitted, and the one
 * with the smaller residual counts:
 *
 * ```
 * two segments:  R(n) = S + b (n - 1)            n <= c: no request waits, work may slow down
 *                       (S + b (c - 1)) n / c    n >  c: throughput is the same for all n
 * USL:           R(n) = (1 + s (n - 1) + k n (n - 1)) / l           knee sqrt((1 - s) / k)
 * ```
 *
 * A knee is seen only if its curve is much better than the straight line that has none (the first
 * segment alone, or USL with k = 0), and if there are measurements beyond it.
 *
 * Example: 20 workers of 50 ms: 50 ms up to 20 in flight, 100 ms with 40. The knee is 20, at 400
 * requests per second.
 *
 * Source: the asymptotic bounds of operational analysis (Denning and Buzen, 1978), whose first
 * segment has a slope here; Gunther, "Guerrilla Capacity Planning" (2007), Universal Scalability
 * Law; Little's law, `throughput = n / R(n)`.
 */
export function findKnee(curve: readonly CurvePoint[]): KneeVerdict {
  const [first, last] = [curve[0], curve.at(-1)];
  if (first === undefined || last === undefined || curve.length < levelCountMin) {
    return { kind: "few", levelCount: curve.length };
  }
  const points = curve.map(({ level, latencyMs, errorRatio }) => {
    return { x: level, y: latencyMs, weight: 1 / (latencyMs * errorRatio) ** 2 };
  });
  const line = straightLine(points);
  const fit = [twoSegments(points), usl(points)].reduce((best, each) =>
    each.squaredError < best.squaredError ? each : best,
  );
  const freedom = curve.length - 3;
  const left = Math.max(fit.squaredError / freedom, squaredErrorMin);
  const evidence = (line.squaredError - fit.squaredError) / left;
  const residualRatio = relativeDistance(curve, fit.latencyMs);
  const isBeyond = last.level >= beyondRatio * Math.max(1, fit.knee);
  if (residualRatio > residualRatioMax) return { kind: "scattered", residualRatio };
  if (evidence >= evidenceMin && isBeyond && fit.knee > first.level) {
    return { kind: "seen", fit: seenFit(fit, curve) };
  }
  const growth = (level: number) => line.growthMs / line.latencyMs(level);
  if (growth(last.level) <= grownRatio) {
    if (first.level >= aloneMax && growth(first.level) <= kneeGrowthRatio) {
      const perSecond = perSecondAt(line, first.level);
      return { kind: "saturated", levelMin: first.level, perSecond };
    }
    return { kind: "seen", fit: seenFit(line, curve) };
  }
  return { kind: "below", levelMax: last.level, riseRatio: last.latencyMs / first.latencyMs };
}

function seenFit(fit: Omit<LatencyFit, "residualRatio">, curve: readonly CurvePoint[]): LatencyFit {
  const { model, knee, kneeMin, kneeMax, perSecondMax, baseMs, latencyMs } = fit;
  const residualRatio = relativeDistance(curve, latencyMs);
  return { model, knee, kneeMin, kneeMax, perSecondMax, baseMs, residualRatio, latencyMs };
}

function perSecondAt({ latencyMs }: Pick<LatencyFit, "latencyMs">, level: number): number {
  return (1_000 * level) / latencyMs(level);
}

/**
 * Fits USL without crosstalk: throughput approaches its maximum asymptotically. A corner smoothed
 * by averages looks the same. If n rises by a small ratio, throughput rises by `growthMs / R(n)` of
 * it.
 */
function straightLine(points: readonly WeightedPoint[]): Candidate & { readonly growthMs: number } {
  const { coefficients, squaredError } = fitNonNegative(points, [one, others]);
  const [baseMs = 0, slopeMs = 0] = coefficients;
  const growthMs = Math.max(0, baseMs - slopeMs);
  const kneeAt = (ratio: number) => Math.max(1, 1 + (growthMs / ratio - baseMs) / slopeMs);
  const knee = kneeAt(kneeGrowthRatio);
  return {
    model: "usl",
    knee,
    kneeMin: kneeAt(2 * kneeGrowthRatio),
    kneeMax: kneeAt(grownRatio),
    perSecondMax: 1_000 / slopeMs,
    baseMs,
    latencyMs: (level) => baseMs + slopeMs * others(level),
    growthMs,
    squaredError,
  };
}

function twoSegments(points: readonly WeightedPoint[]): Candidate {
  const [from, to] = [points[0]?.x ?? 1, points.at(-1)?.x ?? 1];
  const tried = Array.from({ length: kneeCandidates }, (_, i) => {
    const knee = from * (to / from) ** (i / (kneeCandidates - 1));
    const wait: Basis = (level) => Math.max(1, level / knee);
    const slope: Basis = (level) => others(Math.min(level, knee)) * wait(level);
    const { coefficients, squaredError } = fitNonNegative(points, [wait, slope]);
    const [baseMs = 0, slopeMs = 0] = coefficients;
    const latencyMs = (level: number) => baseMs * wait(level) + slopeMs * slope(level);
    return { knee, squaredError, baseMs, latencyMs };
  });
  const best = tried.reduce((least, each) =>
    each.squaredError < least.squaredError ? each : least,
  );
  // Two standard deviations, with the residual variance of the best curve.
  const plausible = best.squaredError * (1 + 4 / Math.max(1, points.length - 3));
  const knees = tried.filter(({ squaredError }) => squaredError <= plausible);
  return {
    model: "twoSegments",
    ...best,
    kneeMin: knees[0]?.knee ?? best.knee,
    kneeMax: knees.at(-1)?.knee ?? best.knee,
    perSecondMax: perSecondAt(best, best.knee),
  };
}

/** Throughput at least this part of its peak counts as the peak. */
const peakRatio = 0.99;

function usl(points: readonly WeightedPoint[]): Candidate {
  const crosstalk: Basis = (level) => level * others(level);
  const { coefficients, squaredError } = fitNonNegative(points, [one, others, crosstalk]);
  const [baseMs = 0, contentionMs = 0, crosstalkMs = 0] = coefficients;
  const latencyMs = (level: number) =>
    baseMs + contentionMs * others(level) + crosstalkMs * crosstalk(level);
  const knee = Math.sqrt(Math.max(1, (baseMs - contentionMs) / crosstalkMs));
  const perSecond = (level: number) => perSecondAt({ latencyMs }, level);
  const perSecondMax = perSecond(knee);
  let [kneeMin, kneeMax] = [knee, knee];
  while (kneeMin > 1 && perSecond(kneeMin) > peakRatio * perSecondMax) kneeMin *= peakRatio;
  while (Number.isFinite(knee) && perSecond(kneeMax) > peakRatio * perSecondMax) {
    kneeMax /= peakRatio;
  }
  return {
    model: "usl",
    knee,
    kneeMin: Math.max(1, kneeMin),
    kneeMax,
    perSecondMax,
    baseMs,
    latencyMs,
    squaredError,
  };
}

/** Returns the root mean square of the relative distances, weighted by bounded sample counts. */
function relativeDistance(
  curve: readonly CurvePoint[],
  latencyMs: (level: number) => number,
): number {
  let weights = 0;
  let sum = 0;
  for (const point of curve) {
    const weight = Math.min(point.count, 10 * pointSamplesMin);
    weights += weight;
    sum += weight * (latencyMs(point.level) / point.latencyMs - 1) ** 2;
  }
  return Math.sqrt(sum / weights);
}
