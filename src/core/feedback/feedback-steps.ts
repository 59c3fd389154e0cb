import { sampleWindowMsMax, sampleWindowRttCount } from "../concurrency/sample-window.js";

/** State of a fleet that shows whether a step of its limit is in effect. */
export interface StepView {
  readonly nowMs: number;
  /** The decided limit: a whole number from 1. */
  readonly limit: number;
  readonly inFlight: number;
  /** Time of the oldest report of it. */
  readonly fromMs: number;
  /** Since when all Envoys are known to obey their shares. Undefined: not all do. */
  readonly obeyedSinceMs: number | undefined;
  /** Whether the limit, at its pace, has reached that of the algorithm. */
  readonly isPaced: boolean;
  readonly nodeCount: number;
  /** Latency of a request. Undefined: not known yet. */
  readonly rttMs: number | undefined;
}

/** If the algorithm's limit falls by more than this part, it is a step, as into a probe. */
const stepRatio = 0.25;

/**
 * If it grows by more than this, in one step or in several, it waits until the room is in use.
 * Otherwise it would grow on old latencies, which the new room has not increased yet.
 */
const growthRatio = 0.1;

/** Time after which reports count even if a step is not in effect yet, in milliseconds. */
export const stepMsMax = 6_000;

/** How long room that is not used is waited for, in milliseconds. */
export const growthMsMax = 4_000;

/** Part of a larger limit that must be in use for its room to count as taken. */
const takenRatio = 0.95;

/**
 * Determines which reports of Envoys describe the present limit of a service, not an earlier one:
 * after a step of the algorithm, those that begin when all Envoys obey it.
 */
export class FeedbackSteps {
  #stepMs: number | undefined;
  #growthMs: number | undefined;
  /** The limit at the last wait for room, or the lowest since: small steps up add up. */
  #grownFrom = Number.POSITIVE_INFINITY;
  /** When more requests were last in flight than a step allows. */
  #crowdedMs = Number.NEGATIVE_INFINITY;
  #cleanFromMs = Number.NEGATIVE_INFINITY;

  /** Whether a step is not in effect yet, so that no report describes it. */
  get isAwaiting(): boolean {
    return this.#stepMs !== undefined || this.#growthMs !== undefined;
  }

  /** Reports whether measurements that begin or are made at a time describe the present limit. */
  isClean(atMs: number): boolean {
    return !this.isAwaiting && atMs >= this.#cleanFromMs;
  }

  /** Takes a change of the algorithm's limit. @returns whether it is a step */
  note(before: number, limit: number, nowMs: number): boolean {
    this.#grownFrom = Math.min(this.#grownFrom, before, limit);
    const isStep = before - limit > stepRatio * before;
    const isGrowth = limit - this.#grownFrom > growthRatio * this.#grownFrom;
    if (isStep) this.begin(nowMs);
    if (!isGrowth) return isStep;
    this.#grownFrom = limit;
    if (this.#stepMs === undefined) this.#growthMs = nowMs;
    return true;
  }

  /** Begins a step down, which Envoys have to obey. */
  begin(nowMs: number): void {
    this.#stepMs = nowMs;
    this.#growthMs = undefined;
    this.#crowdedMs = nowMs;
  }

  /** Updates the state. Call it once a second, before the algorithm learns. */
  update(view: StepView): void {
    if (this.#growthMs !== undefined) this.#awaitGrowth(this.#growthMs, view);
    if (this.#stepMs !== undefined) this.#awaitStep(this.#stepMs, view);
  }

  /**
   * A step is in effect when limit and shares have reached it, Envoys have acknowledged it, and the
   * requests that they admitted before have ended, which shares do not show.
   */
  #awaitStep(stepMs: number, view: StepView): void {
    const { nowMs, limit, inFlight, nodeCount, obeyedSinceMs, isPaced } = view;
    const isCrowded = inFlight > Math.max(limit, nodeCount);
    const isThere = isPaced && obeyedSinceMs !== undefined && !isCrowded;
    if (isCrowded) this.#crowdedMs = nowMs;
    if (!isThere && nowMs - stepMs < stepMsMax) return;
    const sinceMs = isThere ? Math.max(obeyedSinceMs, this.#crowdedMs) : nowMs;
    this.#cleanFromMs = sinceMs + settleMs(view);
    this.#stepMs = undefined;
  }

  /** Room is taken when most of it is in use. It may stay unused, so time ends the wait, too. */
  #awaitGrowth(growthMs: number, view: StepView): void {
    const { nowMs, limit, inFlight, fromMs } = view;
    const isTaken = inFlight >= takenRatio * limit;
    if (!isTaken && nowMs - growthMs < growthMsMax) return;
    this.#growthMs = undefined;
    this.#cleanFromMs = isTaken ? Math.max(growthMs, fromMs) + settleMs(view) / 2 : nowMs;
  }
}

/** Requests that were admitted before have ended after two round trips. */
function settleMs({ rttMs = 0 }: StepView): number {
  return Math.min(sampleWindowMsMax, sampleWindowRttCount * rttMs);
}
