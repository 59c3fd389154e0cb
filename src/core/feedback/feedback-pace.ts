import { isLearning, type LawName } from "../concurrency/concurrency-laws.js";
import type { LimitPace } from "./feedback-settings.js";

/** The present limit, and the wanted one. */
interface PacedStep {
  /** The limit in force: a whole number from 1. */
  readonly limit: number;
  /** The limit that the algorithm wants: at least 1. */
  readonly wanted: number;
  /** The largest limit that was active a moment ago, such as before a probe. 0: none. */
  readonly familiar: number;
  /** Milliseconds since `limit` was decided. */
  readonly elapsedMs: number;
}

/**
 * Returns the next limit on the way to the wanted one, within the allowed change per second.
 *
 * ```
 * most  = limit * (1 + growth * seconds) + 1     rounded down
 * least = limit * (1 - loss) ^ seconds           rounded down
 * ```
 *
 * It returns at once to a limit that was active a moment ago, so that no probe lasts longer than it
 * has to. Changes of a learning algorithm within `hysteresisRatio` of the limit in force are
 * ignored, so that noise does not send Envoys a new share each second.
 *
 * Example with the defaults, after a second: from 100 to 40 at once, to 10 through 30; from 40 to
 * 160 through 81. From 100, a learning algorithm's 104 gives 100, and its 106 gives 106; a `signal`
 * of 104 gives 104.
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
