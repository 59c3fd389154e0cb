import type { SpaceSaving } from "../core/collections/space-saving.js";
import { type CallerDays, windowLengthsUs } from "./caller-days.js";
import type { CallerDemand, Quantiles } from "./demand.js";

/** Minimum number of callers for an exponent. */
const rankedCallersMin = 10;

/** Maximum number of callers that an exponent is fitted to, highest counts first. */
const rankedCallersMax = 100;

const noQuantiles: Quantiles = { p50: 0, p90: 0, p99: 0, max: 0 };

/** Returns quantiles of hits in the busiest windows, over callers and days; 0 if there are none. */
export function busiestQuantiles(days: CallerDays | undefined): CallerDemand["busiest"] {
  if (days === undefined || days.rowCount === 0) {
    return { second: noQuantiles, minute: noQuantiles, hour: noQuantiles, day: noQuantiles };
  }
  const [second, minute, hour] = windowLengthsUs.map((_, window) =>
    quantiles(days, (row) => days.busiestAt(row, window)),
  );
  return {
    second: second ?? noQuantiles,
    minute: minute ?? noQuantiles,
    hour: hour ?? noQuantiles,
    day: quantiles(days, (row) => days.hitsAt(row)),
  };
}

function quantiles(days: CallerDays, read: (row: number) => number): Quantiles {
  const weights = days.weights();
  const rows = Array.from({ length: days.rowCount }, (_, row) => row);
  const values = Float64Array.from(rows, read);
  const [p50 = 0, p90 = 0, p99 = 0, max = 0] = weightedQuantiles(
    values,
    Float64Array.from(rows, (row) => weights[days.callerAt(row)] ?? 1),
    [0.5, 0.9, 0.99, 1],
  );
  return { p50, p90, p99, max };
}

/** Returns the smallest values that reach given parts of the weight. Parts ascend. */
export function weightedQuantiles(
  values: Float64Array,
  weights: Float64Array,
  parts: readonly number[],
): readonly number[] {
  const order = Uint32Array.from(values, (_, i) => i);
  order.sort((a, b) => (values[a] ?? 0) - (values[b] ?? 0));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  let [reached, next] = [0, 0];
  return parts.map((part) => {
    while (next < order.length && reached < part * total - 1e-9) {
      reached += weights[order[next] ?? 0] ?? 0;
      next += 1;
    }
    return values[order[Math.max(0, next - 1)] ?? 0] ?? 0;
  });
}

/** Returns each count as a part of the sum. */
export function ratios(counts: readonly number[]): readonly number[] {
  const sum = counts.reduce((total, count) => total + count, 0);
  return counts.map((count) => (sum === 0 ? 0 : count / sum));
}

/** Returns the minimum parts of all requests that the most frequent callers sent. */
export function topRatios(top: SpaceSaving<string>): CallerDemand["topRatios"] {
  const counts = top.top(100).map(({ count, errorMax }) => count - errorMax);
  const ratioOf = (callers: number): number => {
    const sum = counts.slice(0, callers).reduce((total, count) => total + count, 0);
    return top.totalCount === 0 ? 0 : sum / top.totalCount;
  };
  return { top1: ratioOf(1), top10: ratioOf(10), top100: ratioOf(100) };
}

/**
 * Returns the exponent s of counts that fall as rank^-s: the least-squares slope of log(count) over
 * log(rank). Counts that may be wrong by more than a tenth are left out.
 *
 * Example: counts of 100, 50, 33, 25 and so on have an exponent of 1.
 */
export function zipfExponent(top: SpaceSaving<string>): number | undefined {
  const exact = top.top(rankedCallersMax).filter(({ count, errorMax }) => errorMax <= count / 10);
  if (exact.length < rankedCallersMin) return undefined;
  const points = exact.map(({ count }, i) => ({ x: Math.log(i + 1), y: Math.log(count) }));
  const meanX = points.reduce((sum, { x }) => sum + x, 0) / points.length;
  const meanY = points.reduce((sum, { y }) => sum + y, 0) / points.length;
  let [products, squares] = [0, 0];
  for (const { x, y } of points) {
    products += (x - meanX) * (y - meanY);
    squares += (x - meanX) ** 2;
  }
  return -products / squares;
}
