import type { ConcurrencyLimit, SignalReading } from "./concurrency-limit.js";
import { type LimitBounds, withinBounds } from "./limit-bounds.js";
import { PidController, type PidSettings } from "./pid.js";

/** Settings of a limit that follows a reading from elsewhere, such as a lag. */
export interface SignalSettings {
  readonly law: "signal";
  /** The reading up to which `limits.max` applies. */
  readonly target: number;
  /** The reading from which `limits.min` applies. More than `target`. */
  readonly critical: number;
  /** Weight of a new reading, above 0 up to 1; 1: no smoothing. Default 1. */
  readonly smoothingRatio: number;
  /** Moves the limit until the reading is at its target. Undefined: a straight line is used. */
  readonly pid: PidSettings | undefined;
  /**
   * Whether each replica has its own reading, and so its own limit, which it does not share.
   * Default false: all replicas have the same reading, and share one limit.
   */
  readonly isOfReplica?: boolean;
}

/**
 * Sets the limit by a reading from elsewhere, such as a consumer's lag: `max` up to the target,
 * `min` from the critical reading, and a straight line between, rounded to the nearest.
 *
 * ```
 * fraction = (reading - target) / (critical - target), within 0 to 1
 * limit    = min + (max - min) * (1 - fraction)
 * reading  = reading before + (new reading - reading before) * smoothingRatio
 * ```
 *
 * Example, with 10 to 1,000 permits, target 10,000, critical 100,000: a lag of 10,000 or less
 * gives 1,000, of 55,000 505, of 100,000 or more 10. `limits.initial` applies until the first
 * reading. A reading that is not a finite number is ignored. If a reading is missing, its source
 * names the bound that applies meanwhile, and the next reading counts as the first.
 *
 * The straight line settles wherever reading and limit happen to agree. With `pid`, the limit moves
 * until the reading is at its target: a `PidController`, which begins on the line, replaces
 * `1 - fraction`. Its error is `(target - reading) / (critical - target)`, within -1 to 1.
 *
 * Each key has an object of its own, so that one busy database never starves another.
 *
 * Use it if the bottleneck is behind the service and is measured: a consumer's lag, a pool, a disk.
 * Do not use it if readings are rare compared with how fast problems grow.
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

  /** Returns where the limit is between `min` (0) and `max` (1). */
  #level(reading: number, nowMs: number): number {
    const { target, critical, pid } = this.#settings;
    const fraction = Math.min(1, Math.max(-1, (reading - target) / (critical - target)));
    const line = 1 - Math.max(0, fraction);
    if (pid === undefined) return line;
    this.#pid ??= new PidController(pid, line);
    return this.#pid.step(-fraction, nowMs);
  }
}
