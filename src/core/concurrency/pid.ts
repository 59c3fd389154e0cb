/** Gains of a controller. The error is a fraction of the distance from target to critical. */
export interface PidSettings {
  /** Change of the level when the error changes by one, at least 0. Default 1. */
  readonly kp: number;
  /** Change of the level in a second at an error of one, at least 0. Default 0.005. */
  readonly kiPerSecond: number;
  /** Part of the level while the error changes by one a second, at least 0. Default 0. */
  readonly kdSeconds: number;
}

/** Maximum time between two readings that counts, in seconds, so that no gap causes a jump. */
export const pidStepSecondsMax = 60;

/**
 * A PID controller that moves a level within 0 to 1 until an error is gone. In its velocity form it
 * adds to the level, so clamping the level is enough to prevent wind-up.
 *
 * ```
 * level = level + kp * (e - e1) + ki * e * dt + kd * (e - 2 * e1 + e2) / dt, within 0 to 1
 * ```
 *
 * `e` is the error now, `e1` and `e2` are the two before, and `dt` is the seconds since `e1`. It
 * begins at the level that it is given, and does not move at its first reading.
 *
 * Example, with kp 1, ki 0.005 and no kd: at level 0.5 an error that goes from 0 to -0.1 in 5 s
 * gives 0.5 - 0.1 - 0.0025 = 0.3975.
 *
 * Source: K. J. Åström, T. Hägglund, "PID Controllers: Theory, Design, and Tuning", section 3.5.
 */
export class PidController {
  readonly #settings: PidSettings;
  #level: number;
  #last: { readonly error: number; readonly before: number; readonly atMs: number } | undefined;

  constructor(settings: PidSettings, level: number) {
    this.#settings = settings;
    this.#level = level;
  }

  /**
   * @param error above 0: the level may rise; below 0: it has to fall
   * @returns the new level
   */
  step(error: number, nowMs: number): number {
    const last = this.#last;
    this.#last = { error, before: last?.error ?? error, atMs: nowMs };
    if (last === undefined) return this.#level;
    const { kp, kiPerSecond, kdSeconds } = this.#settings;
    const seconds = Math.min(pidStepSecondsMax, Math.max(0, (nowMs - last.atMs) / 1_000));
    const bend = error - 2 * last.error + last.before;
    const moved =
      kp * (error - last.error) +
      kiPerSecond * error * seconds +
      (seconds > 0 ? (kdSeconds * bend) / seconds : 0);
    this.#level = Math.min(1, Math.max(0, this.#level + moved));
    return this.#level;
  }
}
