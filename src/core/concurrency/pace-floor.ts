/** The weight of the newest step in the mean pace. */
const newestWeight = 0.2;

/** How much of the highest pace is left with each step, so that it is forgotten in minutes. */
const peakKept = 0.998;

/** How much of a floor is left with each step: it holds as long as a lower limit costs pace. */
const floorKept = 0.95;

/** Below such a part a pace, or a limit, has fallen. */
const fallenRatio = 0.85;

/** Standard deviations by which a mean pace falls by chance: two, less by the root of the steps. */
const chanceDeviations = 0.67;

/** More than exponential times scatter. */
const scatteredDispersion = 1;

/** How much a floor raises the limit at once. */
const raiseRatio = 1.5;

/** Where they do, it is raised so many steps apart, which is when a floor is gone. */
const raiseSteps = 8;

/** What a step saw. */
interface PaceStep {
  readonly nowMs: number;
  readonly limit: number;
  readonly inFlightMax: number;
  /** Variance of round trips over their squared mean. */
  readonly dispersion: number;
}

/**
 * A floor for a limit, by the pace at which requests end while more ask than are served. Where a
 * limit was lowered and fewer requests end since, it was too low, whatever latency says: then what
 * was in flight at the highest pace is the floor. If they end no faster there, the service has
 * become slower, and there is no floor. It rises by a half a step at most: a peak may be chance.
 *
 * Round trips that scatter need this: an estimate from them that is too high shows a queue and
 * corrects itself, and one that is too low shows nothing, since levels above it are not seen. Where
 * they scatter more than exponential ones, more is tried now and then, too: the limit times 1.5,
 * which falls back in eight steps, unless more requests end and their pace then holds it there.
 *
 * Source: TCP BBR, which looks for more bandwidth in one of eight round trips.
 */
export class PaceFloor {
  #sinceMs = 0;
  #endedCount = 0;
  #stepCount = 0;
  #meanPerMs = 0;
  #peakPerMs = 0;
  #peakLevel = 0;
  #floor = 0;

  /** The least that the limit should be; 0 where nothing says so. */
  get floor(): number {
    return this.#floor;
  }

  /** A step begins. */
  begin(nowMs: number): void {
    this.#sinceMs = nowMs;
    this.#endedCount = 0;
  }

  /** A request ended. */
  ended(): void {
    this.#endedCount += 1;
  }

  /** Whether so much less than before ended in this step that chance does not explain it. */
  hasFallen(nowMs: number): boolean {
    const expected = this.#meanPerMs * (nowMs - this.#sinceMs);
    return this.#endedCount + Math.sqrt(expected) < fallenRatio * expected;
  }

  /** A step is over in which more asked than were served. */
  keep({ nowMs, limit, inFlightMax, dispersion }: PaceStep): void {
    const elapsedMs = nowMs - this.#sinceMs;
    this.#stepCount += 1;
    const weight = Math.max(newestWeight, 1 / this.#stepCount);
    this.#meanPerMs += weight * (this.#endedCount / elapsedMs - this.#meanPerMs);
    // The peak of means of few steps would be one of chance.
    if (this.#stepCount * newestWeight < 1) return;
    if (dispersion > scatteredDispersion && this.#stepCount % raiseSteps === 0) {
      this.#floor = Math.max(this.#floor, raiseRatio * limit);
      return;
    }
    const expected = this.#peakPerMs * elapsedMs;
    const chance = chanceDeviations * Math.sqrt(expected * dispersion);
    const isLess = this.#meanPerMs * elapsedMs + chance < fallenRatio * expected;
    if (isLess && limit < fallenRatio * this.#peakLevel) {
      this.#floor = Math.min(this.#peakLevel, raiseRatio * limit);
      return;
    }
    this.#floor *= isLess ? 0 : floorKept;
    if (isLess || this.#meanPerMs >= this.#peakPerMs) {
      this.#peakPerMs = this.#meanPerMs;
      this.#peakLevel = Math.min(limit, inFlightMax);
    } else {
      this.#peakPerMs *= peakKept;
    }
  }
}
