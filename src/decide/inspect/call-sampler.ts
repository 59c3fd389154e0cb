import type { Cancel, Clock, Random } from "../../core/base/clock.js";

/** Calls that are looked at in a second, about: where fewer come, each is. */
export const sampledPerSecondMax = 100;

/** The most calls that one sample stands for. */
export const sampleWeightMax = 4_096;

/** How long the pace of calls is measured before the next gaps are made of it. */
const paceMs = 100;

/** Samples after which that is done at once: of calls that suddenly come, no more are looked at. */
const rushSamplesMax = 50;

/**
 * Chooses calls to be looked at: each while there are few, else one of so many that about
 * `sampledPerSecondMax` are a second. The gaps are random, so that no caller hides in a rhythm, and
 * each sample stands for all calls since the one before: the weights add up to all calls.
 *
 * A call that is not chosen costs a subtraction and a comparison.
 */
export class CallSampler {
  readonly #clock: Pick<Clock, "schedule">;
  readonly #random: Random;
  /** Calls until the next one is chosen, and what it was at first. */
  #left = 1;
  #gap = 1;
  /** Calls that a sample stands for, on average. */
  #weight = 1;
  /** Ends a gap that takes longer than the pace is measured. */
  #cancelWake: Cancel | undefined;
  #paceFromMs = 0;
  #paceCallCount = 0;
  #paceSampleCount = 0;

  constructor(clock: Pick<Clock, "schedule">, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Asked once for each call: whether it is chosen. */
  wants(): boolean {
    this.#left -= 1;
    return this.#left <= 0;
  }

  /** Whether a call is chosen and not taken yet; where it never came to that, the next one is. */
  get isDue(): boolean {
    return this.#left <= 0;
  }

  /** Takes the call that was chosen; answers for how many calls it stands. */
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

  /** After a rush come few calls: the next one ends the gap that was made for many. */
  #wake(): void {
    this.#cancelWake = undefined;
    if (this.#left <= 1) return;
    this.#gap -= this.#left - 1;
    this.#left = 1;
  }

  #measure(nowMs: number): void {
    // A moment of a millisecond at least: the clock may stand within a turn.
    const elapsedMs = Math.max(1, nowMs - this.#paceFromMs);
    const wanted = (this.#paceCallCount * 1_000) / (elapsedMs * sampledPerSecondMax);
    this.#weight = Math.min(sampleWeightMax, Math.max(1, Math.ceil(wanted)));
    this.#paceFromMs = nowMs;
    this.#paceCallCount = 0;
    this.#paceSampleCount = 0;
  }

  /** Uniform from 1 to twice the weight less 1: the weight on average. */
  #nextGap(): number {
    if (this.#weight === 1) return 1;
    return 1 + Math.floor(this.#random.next() * (2 * this.#weight - 1));
  }
}
