/** What was seen of a service at one moment, or as the mean of a short time. */
export interface LoadSample {
  /** Requests in flight, the observed one included: above 0. */
  readonly level: number;
  readonly latencyMs: number;
}

/** All samples of about the same level. */
export interface CurvePoint {
  /** The mean level. */
  readonly level: number;
  /** The mean latency. */
  readonly latencyMs: number;
  readonly count: number;
  /** The standard error of the mean latency, as a ratio of it. */
  readonly errorRatio: number;
}

/** Levels up to this one are kept apart; those above in steps of 8 %. */
const exactLevelMax = 12;
const stepRatio = 1.08;

/** Levels further apart are never one point. */
const mergedRatio = 1.5;

/** The largest level that is told apart. */
const levelMax = 1_000_000;

/** The error of any mean, however many samples it has: a service differs during a day. */
const modelErrorRatio = 0.03;

/** Fewer samples do not say what the latency of a level is. */
export const pointSamplesMin = 5;

interface Bin {
  count: number;
  levelSum: number;
  mean: number;
  /** Sum of the squared differences from the mean. */
  squares: number;
}

/**
 * Mean latencies by requests in flight, from samples in any order. It takes the memory of at most
 * 160 levels, whatever the number of samples.
 */
export class LatencyCurve {
  readonly #bins: Bin[] = [];

  add({ level, latencyMs }: LoadSample): void {
    const place = placeOf(level);
    const bin = this.#bins[place] ?? { count: 0, levelSum: 0, mean: 0, squares: 0 };
    this.#bins[place] = bin;
    bin.count += 1;
    bin.levelSum += level;
    // Source: Welford, "Note on a method for calculating corrected sums of squares" (1962).
    const before = latencyMs - bin.mean;
    bin.mean += before / bin.count;
    bin.squares += before * (latencyMs - bin.mean);
  }

  /** Levels with enough samples, lowest first; neighbors with few are taken together. */
  points(): readonly CurvePoint[] {
    const bins = this.#merged();
    const freedom = bins.reduce((sum, { count }) => sum + count - 1, 0);
    const spread = bins.reduce((sum, { squares, mean }) => sum + squares / mean ** 2, 0);
    // The same for all levels: that of a few samples alone would be chance.
    const variance = spread / Math.max(1, freedom);
    return bins.map(({ count, levelSum, mean }) => ({
      level: levelSum / count,
      latencyMs: mean,
      count,
      errorRatio: Math.sqrt(variance / count + modelErrorRatio ** 2),
    }));
  }

  #merged(): readonly Bin[] {
    const merged: Bin[] = [];
    for (const bin of this.#bins) {
      if (bin === undefined) continue;
      const last = merged.at(-1);
      const isNear = last !== undefined && meanLevel(bin) <= mergedRatio * meanLevel(last);
      if (last === undefined || last.count >= pointSamplesMin || !isNear) merged.push(bin);
      else merged[merged.length - 1] = together(last, bin);
    }
    return merged.filter(({ count, mean }) => count >= pointSamplesMin && mean > 0);
  }
}

function meanLevel({ levelSum, count }: Bin): number {
  return levelSum / count;
}

/** Source: Chan, Golub and LeVeque, "Updating formulae" (1979). */
function together(one: Bin, other: Bin): Bin {
  const count = one.count + other.count;
  const apart = other.mean - one.mean;
  return {
    count,
    levelSum: one.levelSum + other.levelSum,
    mean: one.mean + (apart * other.count) / count,
    squares: one.squares + other.squares + (apart ** 2 * one.count * other.count) / count,
  };
}

function placeOf(level: number): number {
  const bounded = Math.min(Math.max(level, 0), levelMax);
  if (bounded <= exactLevelMax) return Math.round(bounded);
  return exactLevelMax + 1 + Math.floor(Math.log(bounded / exactLevelMax) / Math.log(stepRatio));
}
