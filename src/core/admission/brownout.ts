import { loadRatioMax } from "./load.js";
import { type Priority, priorities } from "./priority.js";

/** When a service gives degraded answers. */
export interface BrownoutSettings {
  /** The load from which a class is served degraded answers, above 0. */
  readonly fromRatios: Readonly<Record<Priority, number>>;
  /** How far below that the load must fall until the class gets full answers again. */
  readonly bandRatio: number;
  /** The time constant over which the load is averaged, in milliseconds, from 1. */
  readonly memoryMs: number;
}

/**
 * Default settings. Each class is degraded a little before the load at which it would be refused
 * (`defaultShedThresholds`).
 */
export const defaultBrownoutSettings: BrownoutSettings = {
  fromRatios: { critical: 0.95, high: 0.9, normal: 0.85, low: 0.7 },
  bandRatio: 0.2,
  memoryMs: 1_000,
};

/**
 * Determines, by the load of a service, for which classes it should serve degraded answers, which
 * cost it less: without recommendations, from a cache, with fewer results.
 *
 * The load is averaged over `memoryMs`; it counts as unchanged from one `update` to the next. The
 * brownout of a class begins when the mean reaches its ratio and ends `bandRatio` below, so that a
 * load near the ratio does not toggle it.
 *
 * Example: by the defaults `normal` is degraded from a mean of 0.85 on, and until it is below 0.65.
 */
export class Brownout {
  readonly #settings: BrownoutSettings;
  readonly #isOn: Record<Priority, boolean> = {
    critical: false,
    high: false,
    normal: false,
    low: false,
  };
  #meanRatio = 0;
  #loadRatio = 0;
  #updatedMs: number | undefined;

  constructor(settings: BrownoutSettings = defaultBrownoutSettings) {
    this.#settings = settings;
  }

  /** Sets the load. What is not a number counts as 0. @param nowMs monotonic */
  update(loadRatio: number, nowMs: number): void {
    const { fromRatios, bandRatio, memoryMs } = this.#settings;
    if (this.#updatedMs !== undefined) {
      const kept = Math.exp(-Math.max(0, nowMs - this.#updatedMs) / memoryMs);
      this.#meanRatio = this.#loadRatio + (this.#meanRatio - this.#loadRatio) * kept;
    }
    this.#updatedMs = nowMs;
    this.#loadRatio = loadRatio > 0 ? Math.min(loadRatio, loadRatioMax) : 0;
    for (const priority of priorities) {
      const fromRatio = fromRatios[priority];
      if (this.#meanRatio >= fromRatio) this.#isOn[priority] = true;
      else if (this.#meanRatio < fromRatio - bandRatio) this.#isOn[priority] = false;
    }
  }

  /** The mean load. */
  get meanRatio(): number {
    return this.#meanRatio;
  }

  /** Reports whether a class is served degraded answers. */
  isOn(priority: Priority): boolean {
    return this.#isOn[priority];
  }

  /**
   * Returns how much of an answer to leave out, 0 to 1: linear from the load at which the brownout
   * of the class ends to a load of 1, or to its ratio if that is more; 0 outside of a brownout.
   *
   * Example: by the defaults, `normal` at a mean of 0.85: 0.2 / 0.35 = 0.57.
   */
  depthRatio(priority: Priority): number {
    if (!this.#isOn[priority]) return 0;
    const { fromRatios, bandRatio } = this.#settings;
    const endRatio = fromRatios[priority] - bandRatio;
    const depth = (this.#meanRatio - endRatio) / (Math.max(1, fromRatios[priority]) - endRatio);
    return Math.min(1, Math.max(0, depth));
  }
}
