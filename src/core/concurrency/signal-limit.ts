import type { ConcurrencyLimit, SignalReading } from "./concurrency-limit.js";
import { type LimitBounds, withinBounds } from "./limit-bounds.js";
import { PidController, type PidSettings } from "./pid.js";

/** A limit by a reading from elsewhere, such as a lag. */
export interface SignalSettings {
  readonly law: "signal";
  /** The reading up to which `limits.max` holds. */
  readonly target: number;
  /** The reading from which `limits.min` holds; more than `target`. */
  readonly critical: number;
  /** Weight of a new reading, above 0 up to 1; 1: no smoothing. Default 1. */
  readonly smoothingRatio: number;
  /** Moves the limit until the reading is at its target; undefined: a straight line. */
  readonly pid: PidSettings | undefined;
  /**
   * Whether each replica has its own reading, and so its own limit, which it shares with nobody.
   * Default false: all read the same, and share one limit.
   */
  readonly isOfReplica?: boolean;
}

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
 * reading. A reading that is no number is left aside; what a missing one means is for who reads,
 * who names the bound that holds meanwhile, and the next reading counts as the first.
 *
 * The straight line rests wherever reading and limit happen to agree. With `pid` the limit moves
 * until the reading is at its target: a `PidController`, which begins on the line, takes the place
 * of `1 - fraction`. Its error is `(target - reading) / (critical - target)`, within -1 to 1.
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
  #pid: PidController | undefined;

  constructor(settings: SignalSettings, limits: LimitBounds) {
    this.#settings = settings;
    this.#limits = limits;
    this.#limit = Math.floor(withinBounds(limits, limits.initial));
  }

  get limit(): number {
    return this.#limit;
  }

  record(): void {}

  update(): void {}

  read(reading: SignalReading, nowMs: number): void {
    if (reading === "min" || reading === "max") {
      this.#reading = undefined;
      this.#pid = undefined;
      this.#limit = withinBounds(this.#limits, this.#limits[reading]);
      return;
    }
    if (!Number.isFinite(reading)) return;
    const before = this.#reading ?? reading;
    this.#reading = before + (reading - before) * this.#settings.smoothingRatio;
    const { min, max } = this.#limits;
    const level = this.#level(this.#reading, nowMs);
    this.#limit = withinBounds(this.#limits, Math.round(min + (max - min) * level));
  }

  facts(): Readonly<Record<string, number>> {
    return this.#reading === undefined ? {} : { reading: this.#reading };
  }

  /** How much of the way from `min` to `max` is open, 0 to 1. */
  #level(reading: number, nowMs: number): number {
    const { target, critical, pid } = this.#settings;
    const fraction = Math.min(1, Math.max(-1, (reading - target) / (critical - target)));
    const line = 1 - Math.max(0, fraction);
    if (pid === undefined) return line;
    this.#pid ??= new PidController(pid, line);
    return this.#pid.step(-fraction, nowMs);
  }
}
