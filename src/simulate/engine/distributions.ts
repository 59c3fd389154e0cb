import type { Random } from "../../core/base/clock.js";
import { power } from "../../core/collections/power.js";
import type { TimeDistribution } from "../../policy/scenario/scenario-times.js";

/** Draws a new time in milliseconds at each call. */
export type DrawMs = () => number;

/** Returns a constant time. */
export function fixedMs(ms: number): DrawMs {
  return () => ms;
}

/** Draws exponential times. As gaps, they make Poisson arrivals. */
export function exponentialMs(random: Random, meanMs: number): DrawMs {
  return () => -Math.log(1 - random.next()) * meanMs;
}

/**
 * Draws gaps of bursts: a random number of arrivals (geometric, mean `burstCount`) at a tenth of
 * the mean gap, then a pause that compensates, so that the mean gap is `meanMs`.
 */
export function burstyMs(
  random: Random,
  { meanMs, burstCount }: { readonly meanMs: number; readonly burstCount: number },
): DrawMs {
  const within = exponentialMs(random, meanMs / 10);
  const pause = exponentialMs(random, meanMs * (burstCount - (burstCount - 1) / 10));
  return () => (random.next() * burstCount < 1 ? pause() : within());
}

/** Inputs for draws from a distribution. */
interface DrawParts {
  readonly random: Random;
  /** Times in the file of each trace, in milliseconds. */
  readonly traces: ReadonlyMap<string, readonly number[]>;
}

/** Creates draws from a distribution of a scenario. */
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

/** Returns the mean of a distribution, in milliseconds. */
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

/** Returns the standard deviation of the logarithms: the 99th percentile is at 2.3263 of them. */
function sigmaOf({ medianMs, p99Ms }: { medianMs: number; p99Ms: number }): number {
  return Math.log(p99Ms / medianMs) / 2.326347874040841;
}

/** Source: Box and Muller, 1958. */
function standardNormal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
}
