import { sampleWindowMsMax, sampleWindowRttCount } from "../concurrency/sample-window.js";

/** What a fleet does when it is asked, as far as steps of its limit show in that. */
export interface StepView {
  readonly nowMs: number;
  /** Active as decided; a whole number from 1. */
  readonly limit: number;
  readonly inFlight: number;
  /** When the oldest of that was true. */
  readonly fromMs: number;
  /** Since when all Envoys are known to have taken their shares; undefined: not all have. */
  readonly obeyedSinceMs: number | undefined;
  /** Whether the limit has come to where the law wants it, at its pace. */
  readonly isPaced: boolean;
  readonly nodeCount: number;
  /** What a request takes; undefined: nobody knows yet. */
  readonly rttMs: number | undefined;
}

/** A law's limit that falls by more than this part of itself is a step, as into a probe. */
const stepRatio = 0.25;

/**
 * One that grows by more than this, in one step or in several, waits until its room is taken, or it
 * would grow on old news: of latency that the room has not made longer yet.
 */
const growthRatio = 0.1;

/** How long a step may take to come into force before what is seen counts all the same. */
export const stepMsMax = 6_000;

/** How long room to grow is kept in mind that nobody takes, in milliseconds. */
export const growthMsMax = 4_000;

/** The part of a larger limit that must be in use to say that Envoys have taken their room. */
const takenRatio = 0.95;

/**
 * Which numbers of Envoys tell of the present limit of a service, and not of one before it: after a
 * step of the law, those that begin when all Envoys have come to it.
 */
export class FeedbackSteps {
  #stepMs: number | undefined;
  #growthMs: number | undefined;
  /** The limit when room was waited for, or the least since: small steps up are one together. */
  #grownFrom = Number.POSITIVE_INFINITY;
  /** When more was in work than a step leaves, for the last time. */
  #crowdedMs = Number.NEGATIVE_INFINITY;
  #cleanFromMs = Number.NEGATIVE_INFINITY;

  /** Whether a step is on its way, so that nothing that is seen tells of it yet. */
  get isAwaiting(): boolean {
    return this.#stepMs !== undefined || this.#growthMs !== undefined;
  }

  /** Whether what begins then, or is seen then, tells of the present limit. */
  isClean(atMs: number): boolean {
    return !this.isAwaiting && atMs >= this.#cleanFromMs;
  }

  /** The law's limit was another one before. @returns whether that is a step */
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

  /** A step down: Envoys have to come to it. */
  begin(nowMs: number): void {
    this.#stepMs = nowMs;
    this.#growthMs = undefined;
    this.#crowdedMs = nowMs;
  }

  /** Once a second, before anything is learned. */
  update(view: StepView): void {
    if (this.#growthMs !== undefined) this.#awaitGrowth(this.#growthMs, view);
    if (this.#stepMs !== undefined) this.#awaitStep(this.#stepMs, view);
  }

  /**
   * A step is active when limit and shares have come to it, Envoys have said so, and what they
   * let in before is gone: of that no Envoy's share says anything.
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

  /** Room is taken when most of it is seen in use; nobody need use it, so time ends that, too. */
  #awaitGrowth(growthMs: number, view: StepView): void {
    const { nowMs, limit, inFlight, fromMs } = view;
    const isTaken = inFlight >= takenRatio * limit;
    if (!isTaken && nowMs - growthMs < growthMsMax) return;
    this.#growthMs = undefined;
    this.#cleanFromMs = isTaken ? Math.max(growthMs, fromMs) + settleMs(view) / 2 : nowMs;
  }
}

/** Requests that were let in before are gone after two round trips. */
function settleMs({ rttMs = 0 }: StepView): number {
  return Math.min(sampleWindowMsMax, sampleWindowRttCount * rttMs);
}
