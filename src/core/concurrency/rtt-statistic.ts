import { assert } from "../base/errors.js";

/** Which number stands for the latencies of many requests. */
export type RttStatistic =
  | { readonly kind: "mean" }
  /** @property percentile above 0 to 100; 50 shrugs off the few very long ones */
  | { readonly kind: "percentile"; readonly percentile: number };

/**
 * The mean of values, or one that so many percent of them do not exceed (nearest rank).
 *
 * Example: of 10, 20, 30, 40 the mean is 25, the percentile 50 is 20, and 51 is 30.
 *
 * @param values at least one, sorted where a percentile is asked for
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
