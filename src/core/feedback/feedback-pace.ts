import { isLearning, type LawName } from "../concurrency/concurrency-laws.js";
import type { LimitPace } from "./feedback-settings.js";

/** Where a limit stands, and what may be made of it. */
interface PacedStep {
  /** The limit in force: a whole number from 1. */
  readonly limit: number;
  /** What the law wants: from 1. */
  readonly wanted: number;
  /** The largest limit that was active a moment ago, as before a probe; 0: none. */
  readonly familiar: number;
  /** Milliseconds since `limit` was decided. */
  readonly elapsedMs: number;
}

/**
 * The next limit on the way from one to another, within what a second may change.
 *
 * ```
 * most  = limit * (1 + growth * seconds) + 1     rounded down
 * least = limit * (1 - loss) ^ seconds           rounded down
 * ```
 *
 * Back to what was active a moment ago it goes at once, so that a probe is over when it is over.
 * Within `hysteresisRatio` of the limit in force a learning law changes nothing, so that Envoys are
 * not told a new share each second for noise.
 *
 * Example, by the defaults, after a second: from 100 to 40 at once, to 10 by way of 30; from 40 to
 * 160 by way of 81. From 100 a law's 104 is 100, its 106 is 106; a `signal` of 104 is 104.
 *
 * @returns a whole number from 1
 */
export function pacedLimit(
  { limit, wanted, familiar, elapsedMs }: PacedStep,
  law: LawName,
  pace: LimitPace,
): number {
  const { growthRatioPerSecond, lossRatioPerSecond, hysteresisRatio } = pace;
  if (isLearning(law) && Math.abs(wanted - limit) < hysteresisRatio * limit) return limit;
  const seconds = Math.max(0, elapsedMs) / 1_000;
  const grown = Math.floor(limit * (1 + growthRatioPerSecond * seconds) + Math.min(1, seconds));
  const most = Math.max(familiar, grown);
  const least = Math.floor(limit * (1 - lossRatioPerSecond) ** seconds);
  return Math.max(1, least, Math.min(most, Math.floor(wanted)));
}
