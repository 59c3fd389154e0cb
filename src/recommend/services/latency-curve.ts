/** State of a service at one moment, or its mean over a short time. */
export interface LoadSample {
  /** Requests in flight, including the observed one: above 0. */
  readonly level: number;
  readonly latencyMs: number;
}

/** All samples of approximately the same level. */
export interface CurvePoint {
  /** Mean level. */
  readonly level: number;
  /** Mean latency. */
  readonly latencyMs: number;
  readonly count: number;
  /** Standard error of the mean latency, as a ratio of it. */
  readonly errorRatio: number;
}

/** Levels up to this are kept separately; higher ones in steps of 8 %. */
const exactLevelMax = 12;
const stepRatio = 1.08;

/** Levels further apart than this ratio are never merged. */
const mergedRatio = 1.5;

/** Levels above this are not distinguished. */
const levelMax = 1_000_000;

/** Minimum error of a mean with any number of samples: a service changes during a day. */
const modelErrorRatio = 0.03;

/** Minimum number of samples for the latency of a level. */
export const pointSamplesMin = 5;

interface Bin {
  count: number;
  levelSum: number;
  mean: number;
  /** Sum of the squared differences from the mean. */
  squares: number;
}

/**
 * Collects mean latencies by requests in flight, from samples in any order. Memory is limited to
 * that of 160 levels for any number of samples.
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

  /** Returns levels with enough samples, lowest first. Merges neighbors with few samples. */
  points(): readonly CurvePoint[] {
    const bins = this.#merged();
    const freedom = bins.reduce((sum, { count }) => sum + count - 1, 0);
    const spread = bins.reduce((sum, { squares, mean }) => sum + squares / mean ** 2, 0);
    // One variance for all levels, because that of few samples would be random.
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
