/** Weight of the newest step in the mean throughput. */
const newestWeight = 0.2;

/** Part of the highest throughput that is kept at each step, so that it expires in minutes. */
const peakKept = 0.998;

/** Part of a floor that is kept at each step while a lower limit costs no throughput. */
const floorKept = 0.95;

/** A throughput, or a limit, has fallen if it is below this part of what it was. */
const fallenRatio = 0.85;

/** Standard deviations by which the mean throughput may fall by chance. */
const chanceDeviations = 0.67;

/** Above this dispersion, latencies scatter more than exponential ones. */
const scatteredDispersion = 1;

/** If they do, the limit is raised by this ratio, once in this many steps. */
const raiseSteps = 8;
const raiseRatio = 1.5;

/** Observations of a step. */
interface ThroughputStep {
  readonly nowMs: number;
  readonly limit: number;
  readonly inFlightMax: number;
  /** Variance of round trips, divided by their squared mean. */
  readonly dispersion: number;
}

/**
 * A lower bound of a limit, from the throughput while more requests arrive than are served. If the
 * throughput falls after the limit was lowered, the limit was too low, whatever latency shows. The
 * bound is then the number in flight at the highest throughput. If the throughput does not return
 * at that number, the service has become slower, and there is no bound.
 *
 * Latencies that scatter need this. An estimate from them that is too high shows a queue and
 * corrects itself. One that is too low shows nothing, because no request is seen at a higher level.
 * If latencies scatter more than exponential ones, the limit is also raised by a half in one of
 * eight steps. It falls back, unless the throughput rises and the bound then holds.
 *
 * Source: TCP BBR, which probes for more bandwidth in one of eight round trips.
 */
export class ThroughputFloor {
  #sinceMs = 0;
  #endedCount = 0;
  #stepCount = 0;
  #meanPerMs = 0;
  #peakPerMs = 0;
  #peakLevel = 0;
  #floor = 0;

  /** The lower bound. 0 if there is none. */
  get floor(): number {
    return this.#floor;
  }

  /** Begins a step. */
  begin(nowMs: number): void {
    this.#sinceMs = nowMs;
    this.#endedCount = 0;
  }

  /** Counts a request that ended. */
  ended(): void {
    this.#endedCount += 1;
  }

  /** Reports whether the throughput of this step fell by more than chance explains. */
  hasFallen(nowMs: number): boolean {
    const expected = this.#meanPerMs * (nowMs - this.#sinceMs);
    return this.#endedCount + Math.sqrt(expected) < fallenRatio * expected;
  }

  /** Ends a step in which more requests arrived than were served. */
  keep({ nowMs, limit, inFlightMax, dispersion }: ThroughputStep): void {
    const elapsedMs = nowMs - this.#sinceMs;
    this.#stepCount += 1;
    const weight = Math.max(newestWeight, 1 / this.#stepCount);
    this.#meanPerMs += weight * (this.#endedCount / elapsedMs - this.#meanPerMs);
    // The highest mean of few steps would be a result of chance.
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
