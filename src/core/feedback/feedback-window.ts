import { type ConcurrencySettings, concurrencyLaws } from "../concurrency/concurrency-laws.js";
import type { WindowedSample } from "../concurrency/concurrency-limit.js";
import {
  sampleWindowMs,
  sampleWindowMsMax,
  sampleWindowRttCount,
  windowSampleCountMin,
} from "../concurrency/sample-window.js";
import type { ServiceSamples } from "./feedback.js";

/** Minimum time without a response, while requests are in flight, in milliseconds. */
const stallMsMin = 2_000;

/** Round trips without a response after which callers are taken to have left. */
const stallRttCount = 4;

/**
 * Adds up reports of Envoys to windows for the algorithms. A window has at least one second, two
 * round trips and ten requests. Without requests, no window ends, so idle time changes nothing.
 *
 * If requests are in flight and none gets a response for two seconds and four round trips, all in
 * flight count as dropped. Envoy counts no request whose caller left before the response, so a
 * queue longer than callers wait would otherwise look like idle time, and its limit would stay.
 *
 * The latency is the mean, or the weighted mean of medians if the algorithm uses percentile 50.
 * Reports of Envoys do not contain other percentiles; the mean replaces them.
 *
 * A failure is a drop only for algorithms that have no other sign of overload. For the others, only
 * failures beyond the number of requests with a latency count, since those never got a response. A
 * release that answers every fifth request with 500 must not lower its own limit.
 */
export class FleetWindow {
  readonly #byMedian: boolean;
  readonly #byDrops: boolean;
  #firstMs: number | undefined;
  #count = 0;
  #sumMs = 0;
  #medianCount = 0;
  #medianSumMs = 0;
  #errorCount = 0;
  #inFlightMax = 0;
  #inFlightNow = 0;
  /** Whether any request has ended since `end` was called last. */
  #hasNews = false;
  /** The time since which requests are in flight and none has ended. */
  #stalledMs: number | undefined;
  /** Mean latency of the last complete window. */
  #lastRttMs = 0;
  /** Sum of the requests per second over all calls of `look`. */
  #rpsSum = 0;
  #lookCount = 0;

  constructor(law: ConcurrencySettings) {
    const statistic = "statistic" in law ? law.statistic : undefined;
    this.#byMedian = statistic?.kind === "percentile" && statistic.percentile === 50;
    this.#byDrops = concurrencyLaws[law.law].countsFailures;
  }

  /** Adds a measurement of one or more Envoys. @param fromMs its start: the previous report */
  add(
    { latency, errorCount }: Pick<ServiceSamples, "latency" | "errorCount">,
    fromMs: number,
  ): void {
    const { count, sumMs, p50 } = latency;
    if (count === 0 && errorCount === 0) return;
    this.#hasNews = true;
    this.#firstMs = Math.min(this.#firstMs ?? fromMs, fromMs);
    this.#count += count;
    this.#sumMs += sumMs;
    this.#errorCount += errorCount;
    if (p50 === undefined) return;
    this.#medianCount += count;
    this.#medianSumMs += p50 * count;
  }

  /**
   * Takes the current state of the fleet: requests in flight, and requests that end per second.
   * Unlike counts, it does not depend on reports that may be lost.
   */
  look({ inFlight, rps }: { readonly inFlight: number; readonly rps: number }): void {
    this.#inFlightMax = Math.max(this.#inFlightMax, inFlight);
    this.#inFlightNow = inFlight;
    this.#rpsSum += rps;
    this.#lookCount += 1;
  }

  /** The mean latency so far; undefined without a measurement. */
  get meanMs(): number | undefined {
    return this.#count === 0 ? undefined : this.#sumMs / this.#count;
  }

  /** Ends the window if it is complete. @returns the window, or undefined */
  end(nowMs: number): WindowedSample | undefined {
    const untimedCount = Math.max(0, this.#errorCount - this.#count);
    const stalledCount = this.#isStalled(nowMs) ? this.#inFlightNow : 0;
    const droppedCount = (this.#byDrops ? this.#errorCount : untimedCount) + stalledCount;
    const sampleCount = this.#byDrops ? Math.max(0, this.#count - droppedCount) : this.#count;
    if (stalledCount === 0) {
      if (this.#firstMs === undefined) return undefined;
      if (sampleCount + droppedCount < windowSampleCountMin) return undefined;
      if (nowMs - this.#firstMs < this.#lengthMs()) return undefined;
    }
    const window: WindowedSample = {
      rttMs: this.#rttMs(),
      sampleCount,
      droppedCount,
      inFlightMax: this.#inFlightMax,
      servedPerMs: this.#lookCount === 0 ? undefined : this.#rpsSum / this.#lookCount / 1_000,
      endMs: nowMs,
    };
    this.#lastRttMs = window.rttMs ?? this.#lastRttMs;
    this.restart();
    return window;
  }

  #isStalled(nowMs: number): boolean {
    const isIdle = this.#inFlightNow < windowSampleCountMin;
    if (this.#hasNews || isIdle) this.#stalledMs = undefined;
    else this.#stalledMs ??= nowMs;
    this.#hasNews = false;
    if (this.#stalledMs === undefined) return false;
    return nowMs - this.#stalledMs >= Math.max(stallMsMin, stallRttCount * this.#lastRttMs);
  }

  /** Drops the current window. The next one contains only new data. */
  restart(): void {
    this.#firstMs = undefined;
    this.#count = 0;
    this.#sumMs = 0;
    this.#medianCount = 0;
    this.#medianSumMs = 0;
    this.#errorCount = 0;
    this.#inFlightMax = 0;
    this.#inFlightNow = 0;
    this.#hasNews = false;
    this.#stalledMs = undefined;
    this.#rpsSum = 0;
    this.#lookCount = 0;
  }

  #lengthMs(): number {
    const { meanMs = 0 } = this;
    return Math.max(sampleWindowMs, Math.min(sampleWindowMsMax, sampleWindowRttCount * meanMs));
  }

  #rttMs(): number | undefined {
    if (this.#byMedian && this.#medianCount > 0) return this.#medianSumMs / this.#medianCount;
    return this.meanMs;
  }
}
