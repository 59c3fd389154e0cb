import type { RoomStatus, WaitRange } from "./room-line.js";
import type { AnnouncedWait } from "./ticket.js";

/** The values that a range depends on. */
export type LinePace = Pick<
  RoomStatus,
  "entriesPerSecond" | "entriesMeasuredCount" | "abandonPerSecond" | "rangeFactor"
>;

/**
 * Returns the range of the wait of a visitor with k people ahead. Undefined if none can enter.
 *
 * Visitors enter at mu per second, and each who waits leaves at theta per second, so the line ahead
 * shrinks as `k' = -(mu + theta k)`. With n = k + 1 steps to take, the wait has
 *
 *     mean      ln(1 + theta n / mu) / theta            (n / mu if none leaves)
 *     variance  n / (mu (mu + theta n)) + mean^2 / c    (mu is known from c ended sessions)
 *
 * plus up to `refreshSeconds`, uniformly, until the visitor asks and enters. Quantiles are those of
 * a Gamma distribution with that mean and variance, by Wilson and Hilferty: with its shape
 * `a = mean^2 / variance` and a normal quantile z,
 *
 *     mean (1 - 1 / (9 a) + z / (3 sqrt(a)))^3
 *
 * at z = 0 and z = +-1.645 `rangeFactor`, which is 1 if the model is true.
 *
 * Example: 99 ahead, 10 per second, none leaves, c = 1,000: mean 10 s, standard deviation 1.05 s;
 * between 8.3 s and 11.8 s.
 *
 * Source: Kleinrock, "Queueing Systems", 1975 (pure death process); Garnett, Mandelbaum and Reiman,
 * "Designing a Call Center with Impatient Customers", 2002 (the fluid limit); Wilson and Hilferty,
 * "The Distribution of Chi-Square", 1931.
 */
export function waitRange(
  aheadCount: number,
  pace: LinePace,
  refreshSeconds: number,
): WaitRange | undefined {
  const { entriesPerSecond: mu = 0, abandonPerSecond: theta, entriesMeasuredCount } = pace;
  if (mu <= 0) return undefined;
  const n = aheadCount + 1;
  const calledSeconds = (theta * n) / mu > 1e-6 ? Math.log1p((theta * n) / mu) / theta : n / mu;
  const mean = calledSeconds + refreshSeconds / 2;
  const variance =
    n / (mu * (mu + theta * n)) +
    calledSeconds ** 2 / Math.max(1, entriesMeasuredCount) +
    refreshSeconds ** 2 / 12;
  const shape = mean ** 2 / variance;
  const z = normalQuantile95 * pace.rangeFactor;
  const quantile = (at: number): number =>
    mean * Math.max(0, 1 - 1 / (9 * shape) + at / (3 * Math.sqrt(shape))) ** 3;
  return { lowSeconds: quantile(-z), middleSeconds: quantile(0), highSeconds: quantile(z) };
}

/**
 * Reports whether an announced range would have held at the width that `rangeFactor` gives. The
 * cube roots of quantiles are linear in the factor, so the factor that it would have needed is the
 * distance of the actual wait from the middle, divided by that of the bound.
 *
 * For `noteWait`, use the present factor, so that learning does not depend on when the range was
 * announced. With the announced factor, the result is whether the range did hold.
 */
export function rangeHeld(
  announced: AnnouncedWait,
  trueSeconds: number,
  rangeFactor: number,
): boolean {
  const middle = Math.cbrt(announced.middleSeconds);
  const truth = Math.cbrt(trueSeconds);
  const bound = Math.cbrt(truth < middle ? announced.lowSeconds : announced.highSeconds);
  const distance = Math.abs(bound - middle) * (rangeFactor / announced.rangeFactor);
  return Math.abs(truth - middle) <= distance;
}

/**
 * Returns the factor after some waits have ended. It grows with each range that did not hold, and
 * falls with each that did, so that it settles where 90 % hold, whatever the distribution. It
 * changes by at most 5 % per second.
 *
 * Source: Gibbs and Candes, "Adaptive Conformal Inference Under Distribution Shift", 2021, as
 * quantile tracking (Angelopoulos, Candes and Tibshirani, "Conformal PID Control", 2023).
 */
export function nextRangeFactor(
  factor: number,
  { endedCount, heldCount }: { readonly endedCount: number; readonly heldCount: number },
): number {
  if (endedCount <= 0) return factor;
  const excess = (endedCount - heldCount) / endedCount - missRatio;
  const gain = Math.min(factorGainMax, endedCount * factorGainEach);
  return Math.min(rangeFactorMax, Math.max(1 / rangeFactorMax, factor * Math.exp(gain * excess)));
}

/**
 * Part of ranges that need not hold: a little less than 10 %, since a range is announced long
 * before it is judged, with the factor of that time.
 */
const missRatio = 0.085;

/** Quantile of the normal distribution: 5 % are above it. */
const normalQuantile95 = 1.645;

const factorGainEach = 0.003;

const factorGainMax = 0.05;

/** Maximum width of ranges, as a multiple of that of the model. */
const rangeFactorMax = 8;
