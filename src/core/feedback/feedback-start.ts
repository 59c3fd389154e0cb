import type { WindowedSample } from "../concurrency/concurrency-limit.js";
import { isMostlyLate } from "../concurrency/min-rtt.js";
import type { FeedbackNodes } from "./feedback-nodes.js";
import { inUseOf } from "./feedback-totals.js";

/** Present state of a service whose limit is not decided yet. */
export interface StartView {
  readonly nowMs: number;
  /** Permits in use, over the fleet. */
  readonly inUse: number;
  /** The same, with room at each Envoy for requests that arrive by chance. */
  readonly roomCount: number;
  /** Requests that Envoys' breakers refuse per second. */
  readonly overflowPerSecond: number;
  /** Requests in flight, and those that end per second, at Envoys that have reported a rate. */
  readonly measured: MeasuredTotals;
  /** Sum of the configured defaults of its Envoys. */
  readonly configuredCount: number;
  /** When the most recent Envoy was first heard of. */
  readonly joinedMs: number;
  /** The mean latency until now; undefined: nothing was measured. */
  readonly rttMs: number | undefined;
  /** Measurements since the last window. Undefined: not enough yet. */
  readonly window: WindowedSample | undefined;
}

/** Requests in flight at some Envoys, and how many end there in a second. */
interface MeasuredTotals {
  readonly inFlight: number;
  readonly rps: number;
}

/** By this factor, what is in use may grow before the first limit is reached. */
const roomRatio = 3;

/** More in flight than this multiple of what Little's law explains is a growing queue. */
const growingRatio = 1.5;

/** The same while Envoys refuse requests. */
const fullGrowingRatio = 1.2;

/** If Envoys refuse more than this part of all requests, their shares are too small. */
const fullRatioMin = 0.1;

/** Consecutive seconds of such refusals after which the limit no longer follows the use. */
const fullCountMax = 3;

/** A latency above this multiple of the lowest includes a queue. */
const slowerRatio = 2;

/** Round trips after which the requests that have ended are not only the short ones. */
const youngRttCount = 2;

/** Minimum time without a new Envoy before a limit is decided, in milliseconds. */
const calmMsMin = 10_000;

/**
 * The first limit of a service. What is in use is no evidence of a queue, so the loop follows it
 * until more is known: a service that has worked without Headgate works on.
 *
 * ```
 * limit  = max(initial, min(inUse + 4 * sqrt(inUse) + 1 of each Envoy, configured defaults))
 * served = rps * rtt                                                    by Little's law
 * ```
 *
 * - **Overload** ends that at `initial`: more requests are in flight than `served`, so requests
 *   arrive faster than they end; latency has doubled; more than a tenth of the requests get no
 *   response; or Envoys refuse more than a tenth of the requests for three seconds.
 * - **No overload** ends it at three times what is in use, ten seconds after the last Envoy has
 *   joined.
 *
 * The algorithm then takes over. Without this, 100 servers at 0.8 of their capacity began with a
 * limit of 50, and a probe lowered that to 20: they served 38 % of the requests for seven seconds.
 *
 * Example: at 0.8 of the capacity of 100 servers of 50 ms, 80 requests are in flight, and 1,600 end
 * in a second: 80 = 1,600 x 0.05. The limit is 240. At three times the capacity of ten servers, 200
 * requests end in a second, which took 400 ms on average, while 200 are in flight: 50.
 */
export class FeedbackStart {
  readonly #initial: number;
  #limit: number;
  #isOver = false;
  #inUseBefore: number | undefined;
  #fullCount = 0;
  /** When a request was first in flight. */
  #usedMs: number | undefined;
  #leastMs = Number.POSITIVE_INFINITY;

  /** @param initial the minimum limit, a whole number from 1 */
  constructor(initial: number) {
    this.#initial = initial;
    this.#limit = initial;
  }

  /** A whole number from 1. */
  get limit(): number {
    return this.#limit;
  }

  /** Whether the algorithm takes over, from `limit`. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Follows what is in use, once a second. */
  look(view: StartView): void {
    const { nowMs, inUse, roomCount, configuredCount, joinedMs, window } = view;
    const { overflowPerSecond, measured } = view;
    if (inUse > 0) this.#usedMs ??= nowMs;
    const isFull = overflowPerSecond > fullRatioMin * (overflowPerSecond + measured.rps);
    this.#fullCount = isFull ? this.#fullCount + 1 : 0;
    const isLate = window !== undefined && isMostlyLate(window);
    const isQueue = this.#isGrowing(view, isFull) || this.#isSlower(view);
    if (isLate || this.#fullCount >= fullCountMax || (inUse > this.#initial && isQueue)) {
      this.#end(this.#initial);
      return;
    }
    this.#inUseBefore = inUse;
    this.#limit = Math.max(this.#limit, Math.floor(Math.min(roomCount, configuredCount)));
    const isCalm = nowMs - joinedMs >= calmMsMin && !isFull;
    if (window !== undefined && isCalm) this.#end(Math.max(this.#limit, roomRatio * inUse));
  }

  /**
   * Whether more requests are in flight than served requests account for: in two reports, or in one
   * while Envoys refuse requests.
   */
  #isGrowing(view: StartView, isFull: boolean): boolean {
    const { measured, inUse, rttMs } = view;
    if (this.#inUseBefore === undefined) return false;
    if (measured.rps === 0 || rttMs === undefined) return isFull;
    if (this.#isYoung(view) && !isFull) return false;
    const served = (measured.rps / 1_000) * rttMs;
    const inFlight = Math.min(measured.inFlight, isFull ? inUse : this.#inUseBefore);
    return inFlight > (isFull ? fullGrowingRatio : growingRatio) * served + 3 * Math.sqrt(served);
  }

  /** Whether requests take much longer than the shortest latency so far. */
  #isSlower(view: StartView): boolean {
    const { rttMs } = view.window ?? {};
    if (rttMs === undefined || this.#isYoung(view)) return false;
    this.#leastMs = Math.min(this.#leastMs, rttMs);
    return rttMs > slowerRatio * this.#leastMs;
  }

  /** Whether the first requests may be in flight still, so that those that ended are short ones. */
  #isYoung({ nowMs, rttMs = 0 }: StartView): boolean {
    return nowMs - (this.#usedMs ?? nowMs) < youngRttCount * rttMs;
  }

  #end(limit: number): void {
    this.#limit = Math.floor(limit);
    this.#isOver = true;
  }
}

/** Returns what is in use at Envoys with recent reports, for a `StartView`. */
export function startTotals(
  nodes: FeedbackNodes,
  nowMs: number,
): Pick<StartView, "measured" | "roomCount"> {
  let [inFlight, rps, roomCount] = [0, 0, 0];
  for (const node of nodes.all) {
    if (!nodes.isFresh(node, nowMs)) continue;
    const inUse = inUseOf(node);
    roomCount += inUse + 4 * Math.sqrt(inUse) + 1;
    // The first report of an Envoy has no rate.
    if (node.rps === 0) continue;
    inFlight += node.inFlight;
    rps += node.rps;
  }
  return { measured: { inFlight, rps }, roomCount };
}
