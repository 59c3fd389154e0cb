import { type ConcurrencySettings, concurrencyLaws } from "../concurrency/concurrency-laws.js";
import type { WindowedSample } from "../concurrency/concurrency-limit.js";
import {
  sampleWindowMs,
  sampleWindowMsMax,
  sampleWindowRttCount,
  windowSampleCountMin,
} from "../concurrency/sample-window.js";
import type { ServiceSamples } from "./feedback.js";

/** How long nothing must end while requests are in flight, in milliseconds. */
const stallMsMin = 2_000;

/** Nothing ends for so many round trips: callers leave before they get a response. */
const stallRttCount = 4;

/**
 * Adds up what Envoys report to windows as the laws take them: of at least a second, two round
 * trips and ten requests, so that where nothing comes nothing ends, and idle time teaches nothing.
 *
 * If requests are in flight and none gets a response for two seconds and four round trips, all in
 * flight count as dropped. Envoy counts no request whose caller left before the response, so a
 * queue longer than callers wait would otherwise look like idle time, and its limit would stay.
 *
 * The latency is the mean, or the mean of medians by their weight where the law asks for percentile
 * 50; other percentiles cannot be told from what Envoys report, and are taken as the mean.
 *
 * A failure is a drop only to laws that have no other sign of overload. For the others failures
 * count as far as there are more of them than requests with a latency: those are the ones that were
 * never answered. A release that answers every fifth request with 500 must not lower its own limit.
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
  /** Since when requests are in flight and none has ended. */
  #stalledMs: number | undefined;
  /** Of the last whole window. */
  #lastRttMs = 0;
  /** Requests a second, added up over looks. */
  #rpsSum = 0;
  #lookCount = 0;

  constructor(law: ConcurrencySettings) {
    const statistic = "statistic" in law ? law.statistic : undefined;
    this.#byMedian = statistic?.kind === "percentile" && statistic.percentile === 50;
    this.#byDrops = concurrencyLaws[law.law].countsFailures;
  }

  /** Adds what one or several Envoys measured. @param fromMs when that begins: the report before */
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
   * The fleet as it stands now: requests in work, and how many end in a second. That is not what
   * was counted, of which some is lost with reports.
   */
  look({ inFlight, rps }: { readonly inFlight: number; readonly rps: number }): void {
    this.#inFlightMax = Math.max(this.#inFlightMax, inFlight);
    this.#inFlightNow = inFlight;
    this.#rpsSum += rps;
    this.#lookCount += 1;
  }

  /** The mean latency until now; undefined: nothing was measured. */
  get meanMs(): number | undefined {
    return this.#count === 0 ? undefined : this.#sumMs / this.#count;
  }

  /** Ends the window if it is whole. @returns it, or undefined */
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

  /** Forgets what it has, so that the next window holds only what comes now. */
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
