import { assert } from "../base/errors.js";

/** Statistic that represents the latencies of many requests. */
export type RttStatistic =
  | { readonly kind: "mean" }
  /** @property percentile above 0 to 100; 50 ignores a few very long ones */
  | { readonly kind: "percentile"; readonly percentile: number };

/**
 * Returns the mean of values, or the value that so many percent do not exceed (nearest rank).
 *
 * Example: of 10, 20, 30, 40 the mean is 25, the percentile 50 is 20, and 51 is 30.
 *
 * @param values at least one; sorted if the statistic is a percentile
 */
export function statisticOf(statistic: RttStatistic, values: ArrayLike<number>): number {
  if (statistic.kind === "mean") {
    let sum = 0;
    for (let place = 0; place < values.length; place += 1) sum += values[place] ?? 0;
    return sum / values.length;
  }
  const rank = Math.max(1, Math.ceil((statistic.percentile / 100) * values.length));
  const value = values[Math.min(rank, values.length) - 1];
  assert(value !== undefined, "a statistic of nothing");
  return value;
}
