import type { Random } from "../core/base/clock.js";
import type { CallerDays } from "./caller-days.js";
import { weightedQuantiles } from "./demand-figures.js";
import {
  needOfStep,
  needStepCount,
  observedRates,
  roundNumbers,
  roundUp,
} from "./number-scales.js";
import type { ConfidenceBand, Headroom, HeldOutCheck } from "./proposal.js";

/** Number of times that days are resampled for a confidence band. */
const resampleCount = 200;

/** Part of the resamples that lies within a band. */
const bandLevel = 0.9;

/** Minimum number of days for a confidence band, and for holding out a day. */
export const bandDaysMin = 3;

/** An outlier needs more than this factor times what nine in ten callers need. */
const outlierFactor = 10;

/** If more than this part of the callers are far above the others, they are no outliers. */
const outlierRatioMax = 0.05;

/** Headroom if days differ little, and if it is unknown how much they differ. */
const headroomMin = 1.25;
const headroomUnknown = 2;

/** How a limit is fitted. */
export interface FitOptions {
  /** Part of the callers that may be refused on a day, 0 to 1. */
  readonly refusedRatioMax: number;
  /** Part of the requests that may be refused, 0 to 1. */
  readonly refusedRequestRatioMax: number;
  /** From 1; undefined: chosen from the differences between days. */
  readonly headroom: number | undefined;
  /** Whether all callers share one bucket, which must not refuse anything. */
  readonly isShared: boolean;
  /** Whether the limit has windows. Its burst is then what it allows in one window. */
  readonly isWindowed: boolean;
  /** Whether a burst can be set. Otherwise it equals the hits in a period. */
  readonly hasBurst: boolean;
  readonly random: Random;
}

/** Hits in a period, and hits at the same time. */
export interface FittedLimit {
  readonly hits: number;
  readonly burst: number;
}

/** A limit that fits what was observed. */
export interface Fit extends FittedLimit {
  readonly headroom: Headroom;
  readonly bands: { readonly hits: ConfidenceBand; readonly burst: ConfidenceBand } | undefined;
  readonly heldOut: HeldOutCheck | undefined;
  /** Keys of callers that need far more than the others. */
  readonly outliers: ReadonlySet<string>;
  /** Part of the caller-day pairs that have a request refused, without outliers. */
  readonly refusedRatio: number;
  /** By rate: the burst that the fitted part of the callers needs, without headroom. */
  readonly curve: readonly FittedLimit[];
}

/**
 * Fits a limit. For each rate there is a smallest burst with which at most the allowed part of the
 * callers is refused on a day. Of these pairs, it takes the one that allows a caller the fewest
 * hits in one period, `burst + hits`: this is where the curve of bursts over rates bends. Headroom
 * `h` fits the limit to callers that send `h` times as much in the same rhythm: a bucket at a rate
 * r then has h times the level that it now has at r / h.
 */
export function fitLimit(days: CallerDays, options: FitOptions): Fit {
  const outliers = options.isShared ? new Set<string>() : findOutliers(days, options);
  const counts = new DayCounts(days, outliers);
  const all = counts.sum(counts.days);
  const headroom = headroomOf(counts, all, options);
  const best = bestLimit(all, headroom.factor, options);
  return {
    ...best,
    headroom,
    bands: bandsOf(counts, headroom.factor, options),
    heldOut: heldOutCheck(counts, options),
    outliers,
    refusedRatio: refusedRatio(all, best, options),
    curve: curveOf(all, options),
  };
}

/** Caller-day pairs of one day, by rate and by the step of their need. */
interface DayCount {
  /** Weighted, like all counts here. */
  rowCount: number;
  hitCount: number;
  /** At `rate * needStepCount + step`. */
  readonly counts: Float64Array;
  /** By rate: the highest needed step. */
  readonly tops: Uint8Array;
}

/** Needs of several days together. A day may be included several times. */
class NeedCounts {
  readonly rateCount: number;
  readonly rowCount: number;
  readonly hitCount: number;
  readonly #days: readonly DayCount[];

  constructor(days: readonly DayCount[], rateCount: number) {
    this.rateCount = rateCount;
    this.rowCount = days.reduce((sum, day) => sum + day.rowCount, 0);
    this.hitCount = days.reduce((sum, day) => sum + day.hitCount, 0);
    this.#days = days;
  }

  /** Returns the highest needed step at a rate. */
  topOf(rate: number): number {
    return this.#days.reduce((top, { tops }) => Math.max(top, tops[rate] ?? 0), 0);
  }

  /** Adds up one cell. Only few, at the top, are read: adding up all of them takes far longer. */
  at(rate: number, step: number): number {
    let sum = 0;
    for (const { counts } of this.#days) sum += counts[rate * needStepCount + step] ?? 0;
    return sum;
  }
}

/** Needs by day. */
class DayCounts {
  readonly #byDay = new Map<number, DayCount>();
  readonly #rateCount: number;

  constructor(rows: CallerDays, outliers: ReadonlySet<string>) {
    this.#rateCount = rows.rateCount;
    const { callers } = rows;
    const weights = rows.weights();
    for (let row = 0; row < rows.rowCount; row += 1) {
      if (outliers.has(callers[rows.callerAt(row)] ?? "")) continue;
      let day = this.#byDay.get(rows.dayAt(row));
      if (day === undefined) {
        const counts = new Float64Array(this.#rateCount * needStepCount);
        day = { rowCount: 0, hitCount: 0, counts, tops: new Uint8Array(this.#rateCount) };
        this.#byDay.set(rows.dayAt(row), day);
      }
      const weight = weights[rows.callerAt(row)] ?? 1;
      day.rowCount += weight;
      day.hitCount += weight * rows.hitsAt(row);
      for (let rate = 0; rate < this.#rateCount; rate += 1) {
        const step = rows.needStepAt(row, rate);
        const at = rate * needStepCount + step;
        day.counts[at] = (day.counts[at] ?? 0) + weight;
        if (step > (day.tops[rate] ?? 0)) day.tops[rate] = step;
      }
    }
  }

  /** Days since 1970, in ascending order. */
  get days(): readonly number[] {
    return [...this.#byDay.keys()].sort((a, b) => a - b);
  }

  /** Returns days with at least half the typical callers: the first and last day may be partial. */
  fullDays(): readonly number[] {
    const sorted = [...this.#byDay.values()].map(({ rowCount }) => rowCount).sort((a, b) => a - b);
    const typical = sorted[Math.floor(sorted.length / 2)] ?? 0;
    return this.days.filter((day) => 2 * (this.#byDay.get(day)?.rowCount ?? 0) >= typical);
  }

  sum(days: readonly number[]): NeedCounts {
    const own = days.flatMap((day) => this.#byDay.get(day) ?? []);
    return new NeedCounts(own, this.#rateCount);
  }
}

/**
 * Returns the burst that all but the allowed part of the pairs need at a rate. A pair that needs
 * more is refused at least the excess. These requests must be within the allowed part as well.
 */
function needAt(
  counts: NeedCounts,
  rate: number,
  { refusedRatioMax, refusedRequestRatioMax, isShared }: FitOptions,
): number {
  const allowed = isShared ? 0 : refusedRatioMax * counts.rowCount + 1e-9;
  const allowedHits = refusedRequestRatioMax * counts.hitCount + 1e-9;
  let [refused, refusedHits] = [0, 0];
  for (let step = counts.topOf(rate); step > 0; step -= 1) {
    // Counts what the burst of the step below refuses.
    refused += counts.at(rate, step);
    refusedHits += refused * (needOfStep(step) - needOfStep(step - 1));
    if (refused > allowed || refusedHits > allowedHits) return needOfStep(step);
  }
  return 1;
}

function curveOf(counts: NeedCounts, options: FitOptions): readonly FittedLimit[] {
  return Array.from({ length: counts.rateCount }, (_, rate) => {
    const burst = needAt(counts, rate, options);
    return { hits: options.isWindowed ? burst : (observedRates[rate] ?? 0), burst };
  });
}

/** Returns the burst at a rate, interpolated between the curve's points on logarithmic scales. */
function burstAt(curve: readonly FittedLimit[], hits: number): number {
  const above = curve.findIndex((one) => one.hits >= hits);
  const [low, high] = [curve[above - 1], curve[above]];
  if (high === undefined) return curve.at(-1)?.burst ?? 1;
  if (low === undefined) return hits === high.hits ? high.burst : Number.POSITIVE_INFINITY;
  const part = Math.log(hits / low.hits) / Math.log(high.hits / low.hits);
  return low.burst * (high.burst / low.burst) ** part;
}

function bestLimit(counts: NeedCounts, factor: number, options: FitOptions): FittedLimit {
  const curve = curveOf(counts, options);
  if (options.isWindowed) {
    const hits = roundUp(factor * (curve[0]?.burst ?? 1));
    return { hits, burst: hits };
  }
  const most = roundNumbers.at(-1) ?? 1;
  let best: FittedLimit = { hits: most, burst: most };
  for (const hits of roundNumbers) {
    const needed = roundUp(factor * burstAt(curve, hits / factor));
    const burst = options.hasBurst ? needed : hits;
    if (burst < needed) continue;
    if (burst + hits < best.burst + best.hits) best = { hits, burst };
  }
  return best;
}

/** Returns the hits that the fitted part of the callers needs in one period, before rounding. */
function envelopeOf(counts: NeedCounts, options: FitOptions): number {
  const curve = curveOf(counts, options).filter(({ hits }) => hits >= 1);
  return Math.min(...curve.map(({ hits, burst }) => (options.isWindowed ? burst : hits + burst)));
}

/** Returns the part of the caller-day pairs that have a request refused by a limit. */
function refusedRatio(
  counts: NeedCounts,
  { hits, burst }: FittedLimit,
  { isWindowed }: FitOptions,
): number {
  const rate = isWindowed ? 0 : Math.min(counts.rateCount - 1, observedRates.indexOf(hits));
  let refused = 0;
  for (let step = counts.topOf(rate); step > 0 && needOfStep(step) > burst; step -= 1) {
    refused += counts.at(rate, step);
  }
  return counts.rowCount === 0 ? 0 : refused / counts.rowCount;
}

function headroomOf(counts: DayCounts, all: NeedCounts, options: FitOptions): Headroom {
  if (options.headroom !== undefined) return { factor: options.headroom, why: "as it was given" };
  const { days } = counts;
  if (days.length < bandDaysMin) {
    const count = days.length === 1 ? "one day was" : "two days were";
    return { factor: headroomUnknown, why: `${count} observed, so days may differ more` };
  }
  const needs = days.map((day) => envelopeOf(counts.sum([day]), options));
  const ratio = Math.max(...needs) / envelopeOf(all, options);
  const factor = Math.max(headroomMin, Math.ceil(ratio * 20 - 1e-9) / 20);
  const busiest = `the busiest day, fitted alone, needed ${ratio.toFixed(2)} times as much`;
  const least = factor === headroomMin ? `, and ${headroomMin} is the least` : "";
  return { factor, why: `${busiest}${least}` };
}

/** Resamples the days repeatedly, each time as many as there are, and fits each resample. */
function bandsOf(counts: DayCounts, factor: number, options: FitOptions): Fit["bands"] {
  const { days } = counts;
  if (days.length < bandDaysMin) return undefined;
  const fits = Array.from({ length: resampleCount }, () => {
    const drawn = days.map(() => days[Math.floor(options.random.next() * days.length)] ?? 0);
    return bestLimit(counts.sum(drawn), factor, options);
  });
  return {
    hits: bandOf(fits.map(({ hits }) => hits)),
    burst: bandOf(fits.map(({ burst }) => burst)),
  };
}

function bandOf(values: readonly number[]): ConfidenceBand {
  const sorted = values.toSorted((a, b) => a - b);
  const outside = Math.floor((sorted.length * (1 - bandLevel)) / 2);
  return {
    low: sorted[outside] ?? 0,
    high: sorted.at(-1 - outside) ?? 0,
    level: bandLevel,
  };
}

/** Fits all days except the last one, and compares the result with the last one. */
function heldOutCheck(counts: DayCounts, options: FitOptions): HeldOutCheck | undefined {
  const days = counts.fullDays();
  const [last] = days.slice(-1);
  if (last === undefined || days.length < bandDaysMin) return undefined;
  const fitted = counts.sum(days.slice(0, -1));
  const actual = counts.sum([last]);
  const limit = bestLimit(fitted, 1, options);
  return {
    day: last,
    fittedDayCount: days.length - 1,
    predictedRatio: refusedRatio(fitted, limit, options),
    actualRatio: refusedRatio(actual, limit, options),
    needError: envelopeOf(actual, options) / envelopeOf(fitted, options) - 1,
  };
}

/** Returns callers that need in a period more than `outlierFactor` times what 9 in 10 need. */
function findOutliers(days: CallerDays, { isWindowed }: FitOptions): ReadonlySet<string> {
  const { callers } = days;
  const needs = new Float64Array(callers.length);
  for (let row = 0; row < days.rowCount; row += 1) {
    let least = Number.POSITIVE_INFINITY;
    for (let rate = 0; rate < days.rateCount; rate += 1) {
      const hits = isWindowed ? 0 : (observedRates[rate] ?? 0);
      // No proposed limit has a lower rate.
      if (!isWindowed && hits < 1) continue;
      least = Math.min(least, hits + needOfStep(days.needStepAt(row, rate)));
    }
    const caller = days.callerAt(row);
    needs[caller] = Math.max(needs[caller] ?? 0, least);
  }
  const weights = days.weights();
  const [nineInTen = 0] = weightedQuantiles(needs, weights, [0.9]);
  const isFar = (caller: number): boolean => (needs[caller] ?? 0) > outlierFactor * nineInTen;
  const far = weights.reduce((sum, weight, caller) => sum + (isFar(caller) ? weight : 0), 0);
  const all = weights.reduce((sum, weight) => sum + weight, 0);
  return new Set(far <= outlierRatioMax * all ? callers.filter((_, i) => isFar(i)) : []);
}
