import type { LimitBounds, SignalSettings } from "./admission-settings.js";
import type { ConcurrencyLimit } from "./concurrency-limit.js";
import { withinBounds } from "./limit-bounds.js";

/**
 * A limit by a reading of something else, such as how far a consumer lags behind: whole up to the
 * target, least from the critical reading, on a straight line between, rounded to the nearest.
 *
 * ```
 * fraction = (reading - target) / (critical - target), within 0 to 1
 * limit    = min + (max - min) * (1 - fraction)
 * reading  = reading before + (new reading - reading before) * smoothingRatio
 * ```
 *
 * Example, with 10 to 1,000 permits, target 10,000, critical 100,000: a lag of 10,000 or less
 * gives 1,000, of 55,000 505, of 100,000 or more 10. `limits.initial` holds until the first
 * reading. A reading that is no number is left aside; what a missing one means is for who reads.
 *
 * One object stands for one key, so that one busy database never starves another.
 *
 * Fits when what is short lies behind the service and somebody measures it: a consumer's lag, a
 * pool, a disk. Does not fit when readings come seldom next to how fast trouble grows.
 *
 * Source: the admission control of the EvidentDB Kafka linearizer (lag every 5 s).
 */
export class SignalLimit implements ConcurrencyLimit {
  readonly #settings: SignalSettings;
  readonly #limits: LimitBounds;
  #limit: number;
  #reading: number | undefined;

  constructor(settings: SignalSettings, limits: LimitBounds) {
    this.#settings = settings;
    this.#limits = limits;
    this.#limit = Math.floor(withinBounds(limits, limits.initial));
  }

  get limit(): number {
    return this.#limit;
  }

  shedRatio(): number {
    return 0;
  }

  dropsQueued(): boolean {
    return false;
  }

  record(): void {}

  update(): void {}

  read(reading: number): void {
    if (!Number.isFinite(reading)) return;
    const { target, critical, smoothingRatio } = this.#settings;
    const before = this.#reading ?? reading;
    this.#reading = before + (reading - before) * smoothingRatio;
    const fraction = Math.min(1, Math.max(0, (this.#reading - target) / (critical - target)));
    const { min, max } = this.#limits;
    this.#limit = withinBounds(this.#limits, Math.round(min + (max - min) * (1 - fraction)));
  }

  facts(): Readonly<Record<string, number>> {
    return this.#reading === undefined ? {} : { reading: this.#reading };
  }
}
