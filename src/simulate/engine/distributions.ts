import type { Random } from "../../core/base/clock.js";
import { power } from "../../core/collections/power.js";
import type { TimeDistribution } from "../../policy/scenario/scenario-times.js";

/** A time in milliseconds, drawn anew at each call. */
export type DrawMs = () => number;

/** Always the same. */
export function fixedMs(ms: number): DrawMs {
  return () => ms;
}

/** Exponential: as gaps they make Poisson arrivals. */
export function exponentialMs(random: Random, meanMs: number): DrawMs {
  return () => -Math.log(1 - random.next()) * meanMs;
}

/**
 * Gaps of bursts: a random number of arrivals (geometric, `burstCount` in the mean) at a tenth of
 * the mean gap, then a pause that makes up for it, so that the mean gap is `meanMs`.
 */
export function burstyMs(
  random: Random,
  { meanMs, burstCount }: { readonly meanMs: number; readonly burstCount: number },
): DrawMs {
  const within = exponentialMs(random, meanMs / 10);
  const pause = exponentialMs(random, meanMs * (burstCount - (burstCount - 1) / 10));
  return () => (random.next() * burstCount < 1 ? pause() : within());
}

/** What a distribution is drawn with. */
interface DrawParts {
  readonly random: Random;
  /** The times of each trace's file, in milliseconds. */
  readonly traces: ReadonlyMap<string, readonly number[]>;
}

/** Draws from a distribution of a scenario. */
export function createDraw(distribution: TimeDistribution, { random, traces }: DrawParts): DrawMs {
  switch (distribution.kind) {
    case "exponential":
      return exponentialMs(random, distribution.meanMs);
    case "fixed":
      return fixedMs(distribution.ms);
    case "lognormal": {
      const { medianMs } = distribution;
      const sigma = sigmaOf(distribution);
      return () => medianMs * Math.exp(sigma * standardNormal(random));
    }
    case "bimodal": {
      const { fastMs, slowMs, slowRatio } = distribution;
      return () => (random.next() < slowRatio ? slowMs : fastMs);
    }
    case "pareto": {
      const { minMs, maxMs, shape } = distribution;
      const cutTail = power(maxMs / minMs, -shape);
      return () => minMs * power(1 - random.next() * (1 - cutTail), -1 / shape);
    }
    case "trace": {
      const times = traces.get(distribution.file) ?? [];
      return () => times[Math.floor(random.next() * times.length)] ?? 0;
    }
  }
}

/** The mean of a distribution, in milliseconds. */
export function meanOf(distribution: TimeDistribution, traces: DrawParts["traces"]): number {
  switch (distribution.kind) {
    case "exponential":
      return distribution.meanMs;
    case "fixed":
      return distribution.ms;
    case "lognormal":
      return distribution.medianMs * Math.exp(sigmaOf(distribution) ** 2 / 2);
    case "bimodal": {
      const { fastMs, slowMs, slowRatio } = distribution;
      return fastMs + slowRatio * (slowMs - fastMs);
    }
    case "pareto": {
      const { minMs, maxMs, shape } = distribution;
      const ratio = maxMs / minMs;
      if (ratio === 1) return minMs;
      const whole = 1 - power(ratio, -shape);
      if (shape === 1) return (minMs * Math.log(ratio)) / whole;
      return (minMs * (shape / (shape - 1)) * (1 - power(ratio, 1 - shape))) / whole;
    }
    case "trace": {
      const times = traces.get(distribution.file) ?? [];
      return times.reduce((sum, ms) => sum + ms, 0) / Math.max(1, times.length);
    }
  }
}

/** The standard deviation of the logarithms: the 99th percentile is 2.3263 of them away. */
function sigmaOf({ medianMs, p99Ms }: { medianMs: number; p99Ms: number }): number {
  return Math.log(p99Ms / medianMs) / 2.326347874040841;
}

/** Source: Box and Muller, 1958. */
function standardNormal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
}
