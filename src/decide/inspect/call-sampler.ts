import type { Cancel, Clock, Random } from "../../core/base/clock.js";

/** Approximate number of calls sampled per second. If fewer arrive, each one is sampled. */
export const sampledPerSecondMax = 100;

/** Maximum number of calls that one sample represents. */
export const sampleWeightMax = 4_096;

/** How long the rate of calls is measured before it determines the next gaps, in milliseconds. */
const paceMs = 100;

/** Number of samples after which this happens at once, so that a rush adds no more samples. */
const rushSamplesMax = 50;

/**
 * Chooses calls to sample: every call while there are few, otherwise about `sampledPerSecondMax` a
 * second. The gaps are random, so that no regular caller stays hidden, and each sample represents
 * all calls since the previous one: the weights add up to all calls.
 *
 * A call that is not chosen costs a subtraction and a comparison.
 */
export class CallSampler {
  readonly #clock: Pick<Clock, "schedule">;
  readonly #random: Random;
  /** Calls until the next one is chosen, and the initial value of that. */
  #left = 1;
  #gap = 1;
  /** Number of calls that a sample represents on average. */
  #weight = 1;
  /** Ends a gap that takes longer than the rate is measured. */
  #cancelWake: Cancel | undefined;
  #paceFromMs = 0;
  #paceCallCount = 0;
  #paceSampleCount = 0;

  constructor(clock: Pick<Clock, "schedule">, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Whether a call is chosen. Called once for each call. */
  wants(): boolean {
    this.#left -= 1;
    return this.#left <= 0;
  }

  /** Whether a call is chosen and not yet taken. If it is never taken, the next one is chosen. */
  get isDue(): boolean {
    return this.#left <= 0;
  }

  /** Takes the chosen call. Returns the number of calls that it represents. */
  take(nowMs: number): number {
    const callCount = Math.max(1, this.#gap - this.#left);
    this.#paceCallCount += callCount;
    this.#paceSampleCount += 1;
    const isDue = nowMs - this.#paceFromMs >= paceMs;
    if (isDue || this.#paceSampleCount >= rushSamplesMax) this.#measure(nowMs);
    this.#gap = this.#nextGap();
    this.#left = this.#gap;
    if (this.#gap > 1) this.#cancelWake ??= this.#clock.schedule(paceMs, () => this.#wake());
    return callCount;
  }

  /** Few calls follow a rush: the next one ends the gap that was computed for many. */
  #wake(): void {
    this.#cancelWake = undefined;
    if (this.#left <= 1) return;
    this.#gap -= this.#left - 1;
    this.#left = 1;
  }

  #measure(nowMs: number): void {
    // At least a millisecond: the clock may stand still within a turn.
    const elapsedMs = Math.max(1, nowMs - this.#paceFromMs);
    const wanted = (this.#paceCallCount * 1_000) / (elapsedMs * sampledPerSecondMax);
    this.#weight = Math.min(sampleWeightMax, Math.max(1, Math.ceil(wanted)));
    this.#paceFromMs = nowMs;
    this.#paceCallCount = 0;
    this.#paceSampleCount = 0;
  }

  /** Uniform from 1 to twice the weight minus 1, so that the mean is the weight. */
  #nextGap(): number {
    if (this.#weight === 1) return 1;
    return 1 + Math.floor(this.#random.next() * (2 * this.#weight - 1));
  }
}
