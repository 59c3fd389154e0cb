/** Levels up to this one are separate. Higher ones are grouped in steps of a twelfth. */
const exactLevelMax = 16;
const levelStepRatio = 1.08;

/** Maximum number of round trips that count per level: newer ones replace older ones. */
const levelWeightMax = 100;

/**
 * The same as a multiple of the level, up to the knee. By Little's law, as many requests end in a
 * round trip as are in flight. The first requests of a level to end are the short ones, and the
 * last are the long ones, so more than one round trip must count.
 */
const levelWeightRatio = 2;

/** How long samples are remembered, in milliseconds, or in round trips if there are few. */
const memoryMs = 30_000;
const memoryCount = 400;

/** Factor by which samples above the knee are forgotten faster: there are always new ones. */
const aboveKneeHaste = 4;

/** Multiple of the knee from which a level counts as above it. */
const aboveKneeRatio = 1.2;

/** Minimum weight of a level that counts. */
const weightMin = 0.5;

/** How much less likely than the likeliest knee a plausible one may be: two deviations. */
const plausibleLoss = 2;

/** How much likelier no queue at any level must be than a queue at all levels. */
const flatGain = 1;

/** Bounds of the squared coefficient of variation that is assumed for round trips. */
const dispersionMin = 0.3;
const dispersionMax = 20;

/** Below this level, there is one request in flight. */
const aloneMax = 1.5;

/** The knee of a service, estimated from round trips. */
export interface KneeFit {
  /** The likeliest number of requests that are served at once. */
  readonly knee: number;
  /** The lowest plausible knee. 0 if nothing was seen below the knee. */
  readonly lowest: number;
  /** Whether the knee may be higher than any number that was in flight. */
  readonly isOpen: boolean;
  /** Whether round trips are as long with many in flight as with few: there is no queue. */
  readonly isFlat: boolean;
  /** Whether that is likelier than a queue at every level, however slightly. */
  readonly isFlatter: boolean;
  /** How long a request takes without queueing, in milliseconds. */
  readonly serviceMs: number;
  /** Variance of round trips at the same level, divided by their squared mean. */
  readonly dispersion: number;
}

interface Level {
  /** The mean level, since high levels are grouped. */
  readonly level: number;
  /** Round trips that ended. */
  readonly weight: number;
  /** Total time of all round trips, including those whose callers left. */
  readonly sumMs: number;
  /** Total time of those that ended, and the sum of its squares. */
  readonly endedMs: number;
  readonly squareSum: number;
}

/**
 * Estimates the knee from round trips by the number of requests in flight when each began. A
 * service that serves c requests at once, each in S, first come first served, answers the n-th in
 *
 * ```
 * rtt(n) = S                  n <= c: no request waits
 *          S * n / c          n > c: n - c requests have to end first, one each S / c
 * ```
 *
 * So one curve shows both c and S. Which requests a limit admits, how far it was lowered, and what
 * others have in flight only spread the points on it. For each possible c, S is the mean of
 * `rtt(n) / max(1, n / c)`. The log-likelihood of the samples, with exponential times, is up to a
 * constant
 *
 * ```
 * -sum of ln(max(1, n / c)) - count * ln(S)
 * ```
 *
 * A request whose caller left adds its time to the sums and nothing to the count, as a censored
 * sample does. The maximum gives c. Values of at most two less (times the dispersion of the times,
 * since an estimate from scattered times scatters more) are plausible, too.
 *
 * Example: 10 workers of 50 ms. Requests take 50 ms with 5 or 10 in flight, 75 ms with 15, and
 * 100 ms with 20.
 *
 * Source: Little's law; the knee of Kleinrock, "Power and deterministic rules of thumb" (1979).
 */
export class LatencyByLevel {
  readonly #weights: number[] = [];
  /** The same without those whose callers left. */
  readonly #endedWeights: number[] = [];
  readonly #sumsMs: number[] = [];
  readonly #endedSumsMs: number[] = [];
  readonly #squareSums: number[] = [];
  readonly #levelSums: number[] = [];
  /** The knee at the last call of `age`. 0: not known. */
  #knee = 0;

  /**
   * @param level requests in flight when this one began, including itself: at least 1
   * @param isLeft whether its caller left: it would have taken longer. Default false
   */
  add(level: number, rttMs: number, isLeft = false): void {
    const place = placeOf(level);
    const weight = this.#weights[place] ?? 0;
    const most = Math.max(levelWeightMax, levelWeightRatio * Math.min(level, this.#knee));
    if (weight >= most) this.#keep(place, 1 - 1 / most);
    this.#weights[place] = (this.#weights[place] ?? 0) + 1;
    this.#sumsMs[place] = (this.#sumsMs[place] ?? 0) + rttMs;
    this.#levelSums[place] = (this.#levelSums[place] ?? 0) + level;
    if (isLeft) return;
    this.#endedWeights[place] = (this.#endedWeights[place] ?? 0) + 1;
    this.#endedSumsMs[place] = (this.#endedSumsMs[place] ?? 0) + rttMs;
    this.#squareSums[place] = (this.#squareSums[place] ?? 0) + rttMs * rttMs;
  }

  /** Forgets all samples. */
  clear(): void {
    for (let place = 0; place < this.#weights.length; place += 1) this.#keep(place, 0);
  }

  /** Fades samples after `elapsedMs` milliseconds, in which `count` round trips ended. */
  age(elapsedMs: number, count: number, knee: number): void {
    this.#knee = Number.isFinite(knee) ? knee : 0;
    const age = Math.min(elapsedMs / memoryMs, count / memoryCount);
    const below = Math.exp(-age);
    const above = Math.exp(-age * aboveKneeHaste);
    for (let place = 0; place < this.#weights.length; place += 1) {
      this.#keep(place, this.#levelAt(place) > aboveKneeRatio * knee ? above : below);
    }
  }

  /** Returns the present estimate. Undefined until there are samples. */
  fit(): KneeFit | undefined {
    const levels = this.#seen();
    const last = levels.length - 1;
    if (levels.every(({ weight }) => weight < weightMin)) return undefined;
    const { losses, best } = lossesOf(levels);
    const known = levels[best];
    if (known === undefined) return undefined;
    const serviceMs = serviceMsOf(levels, known.level);
    const dispersion = dispersionOf(levels, known.level, serviceMs);
    const plausible = plausibleLoss * dispersion;
    let low = best;
    while (low > 0 && (losses[low - 1] ?? 0) <= plausible) low -= 1;
    let high = best;
    while (high < last && (losses[high + 1] ?? 0) <= plausible) high += 1;
    const isOpen = high === last;
    const isAlone = (levels[last]?.level ?? 1) < aloneMax;
    const gain = (losses[0] ?? 0) - (losses[last] ?? 0);
    return {
      knee: known.level,
      // A request that is alone in flight has no other to wait for.
      lowest: low > 0 || (levels[0]?.level ?? 0) < aloneMax ? (levels[low]?.level ?? 0) : 0,
      isOpen,
      isFlat: isOpen && (isAlone || gain >= flatGain * dispersion),
      isFlatter: isAlone || gain > 0,
      serviceMs,
      dispersion,
    };
  }

  #levelAt(place: number): number {
    return (this.#levelSums[place] ?? 0) / Math.max(weightMin, this.#weights[place] ?? 0);
  }

  #keep(place: number, ratio: number): void {
    this.#weights[place] = (this.#weights[place] ?? 0) * ratio;
    this.#endedWeights[place] = (this.#endedWeights[place] ?? 0) * ratio;
    this.#sumsMs[place] = (this.#sumsMs[place] ?? 0) * ratio;
    this.#endedSumsMs[place] = (this.#endedSumsMs[place] ?? 0) * ratio;
    this.#squareSums[place] = (this.#squareSums[place] ?? 0) * ratio;
    this.#levelSums[place] = (this.#levelSums[place] ?? 0) * ratio;
  }

  #seen(): readonly Level[] {
    const levels: Level[] = [];
    for (let place = 0; place < this.#weights.length; place += 1) {
      if ((this.#weights[place] ?? 0) < weightMin) continue;
      const weight = this.#endedWeights[place] ?? 0;
      const sumMs = this.#sumsMs[place] ?? 0;
      const endedMs = this.#endedSumsMs[place] ?? 0;
      const squareSum = this.#squareSums[place] ?? 0;
      levels.push({ level: this.#levelAt(place), weight, sumMs, endedMs, squareSum });
    }
    return levels;
  }
}

/** Returns how much less likely a knee at each level is than the likeliest, and which that is. */
function lossesOf(levels: readonly Level[]): {
  readonly losses: readonly number[];
  readonly best: number;
} {
  let count = 0;
  let belowMs = 0;
  for (const { weight, sumMs } of levels) {
    count += weight;
    belowMs += sumMs;
  }
  let aboveCount = 0;
  let aboveLogSum = 0;
  /** Sum of the round trips above, each divided by its level. */
  let abovePerLevelMs = 0;
  const likelihoods: number[] = [];
  let best = levels.length - 1;
  for (let i = levels.length - 1; i >= 0; i -= 1) {
    const { level, weight, sumMs } = levels[i] ?? noLevel;
    const serviceMs = (belowMs + level * abovePerLevelMs) / count;
    likelihoods[i] = aboveCount * Math.log(level) - aboveLogSum - count * Math.log(serviceMs);
    if ((likelihoods[i] ?? 0) > (likelihoods[best] ?? 0)) best = i;
    belowMs -= sumMs;
    abovePerLevelMs += sumMs / level;
    aboveCount += weight;
    aboveLogSum += weight * Math.log(level);
  }
  const most = likelihoods[best] ?? 0;
  return { losses: likelihoods.map((likelihood) => most - likelihood), best };
}

const noLevel: Level = { level: 1, weight: 0, sumMs: 0, endedMs: 0, squareSum: 0 };

function serviceMsOf(levels: readonly Level[], knee: number): number {
  let count = 0;
  let sumMs = 0;
  for (const { level, weight, sumMs: levelMs } of levels) {
    count += weight;
    sumMs += levelMs / Math.max(1, level / knee);
  }
  return sumMs / count;
}

function dispersionOf(levels: readonly Level[], knee: number, serviceMs: number): number {
  let count = 0;
  let sum = 0;
  for (const { level, weight, endedMs, squareSum } of levels) {
    const meanMs = serviceMs * Math.max(1, level / knee);
    count += weight;
    sum += squareSum / (meanMs * meanMs) - (2 * endedMs) / meanMs + weight;
  }
  return Math.min(dispersionMax, Math.max(dispersionMin, sum / count));
}

function placeOf(level: number): number {
  if (level <= exactLevelMax) return level;
  const steps = Math.log(level / exactLevelMax) / Math.log(levelStepRatio);
  return exactLevelMax + Math.floor(steps);
}
