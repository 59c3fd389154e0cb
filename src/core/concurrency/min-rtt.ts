import type { WindowedSample } from "./concurrency-limit.js";
import {
  type Before,
  costMs,
  type Dip,
  type DipResult,
  emptyPool,
  hasQueue,
  isClose,
  isConfirmed,
  isDoubtful,
  isNews,
  isShorter,
  isUnexpected,
  type KnownService,
  nextLevel,
  pooled,
} from "./dip.js";

/** How long a baseline holds without being measured anew. */
export const baselineMsMax = 30_000;

/** The shortest time between two dips; doubles while they find nothing new, to `baselineMsMax`. */
export const dipGapMsMin = 2_500;

/** The longest stay at one level of a dip, where round trips are short; long ones get four. */
export const dipMsMax = 5_000;

/** The most of the throughput that dips may take where the baseline is merely old. */
export const dipShareMax = 0.05;

/** The most of the throughput that dips may take at all. */
export const suspectedDipShareMax = 0.25;

/** Served requests that a measurement is made of; a dip that takes long ends with fewer. */
export const measuredCountMin = 50;

/** Served requests after which a dip decides even where it is a close thing. */
export const closeCountMin = 150;

/** How long a dip lets critical requests pass that leave it nothing to measure. */
const criticalDipMs = 3_000;

/** The least that a dip's measurement is made of. */
const dipCountMin = 10;

/** Share of drops from which a window speaks of overload, whatever its latencies. */
const droppedRatioMax = 0.1;

/** Windows in a row that look like queueing before a dip finds out. */
const suspectCountMin = 2;

/** The first dip waits until this many times what is in use is the limit: it may still grow. */
const firstReachRatio = 1.25;

/** How long after somebody left who was not answered work for such callers is looked for. */
export const leftMsMax = 30_000;

/** Baselines that pass before what ends was met by no other limit than the present one. */
const settleRttCount = 3;

/** What is asked of a law together with a window. */
export interface WindowContext {
  /** The law's limit, without the dip. */
  readonly limit: number;
  /** Below it no dip goes, whole and from 1. */
  readonly limitMin: number;
  /** Whether the law sees more queueing than it can steer against step by step. */
  readonly isSuspect: boolean;
}

/** What a window means for the law. */
export type MinRttFinding =
  /** It tells how the law's own limit does. */
  | { readonly kind: "steady" }
  /** It belongs to a dip, or to the moment after one: it says nothing of the law's limit. */
  | { readonly kind: "dipping" }
  /** A dip is over. */
  | ({ readonly kind: "measured" } & Measurement);

/** What a dip has measured. */
export interface Measurement {
  /** Permits that keep all servers busy without a queue, by Little's law: throughput x baseline. */
  readonly capacity: number;
  /** Whether the baseline is about what was known before. */
  readonly isConfirmed: boolean;
}

/** Whether so much was dropped that latencies of the served say too little. */
export function isMostlyLate(counts: {
  readonly sampleCount: number;
  readonly droppedCount: number;
}): boolean {
  return counts.droppedCount > droppedRatioMax * (counts.sampleCount + counts.droppedCount);
}

/**
 * The round trip without queueing, learned from windows of ordinary requests.
 *
 * A lower measurement is believed at once, since queueing only adds. A higher one may be a queue
 * or a slower release, and only one thing tells them apart: with fewer permits in use a queue gets
 * shorter, a slower release stays slow. So where the limit is reached and the baseline is old, or
 * latency looks like queueing for two windows, the limit is lowered to 0.4 of what is in use for a
 * moment, or where it was measured before to 0.8 of what keeps all servers busy by it
 * (`nextLevel`): a **dip**. There the baseline is measured anew, up or down. While
 *
 * ```
 * rtt(dip) / rtt(before) < 1.25 * permits(dip) / permits(before)
 * ```
 *
 * and the level is not one at which a known baseline, more or less what is seen, is verified,
 * latency fell with the permits: there is still a queue, and the dip goes to 0.4 again. So it does
 * while more than a tenth give up, because then latencies are those of the patient alone.
 *
 * Example: 20 permits at 100 ms; with 8 they take 50 ms, and 50 / 100 is no less than 1.25 x 0.4:
 * the baseline is 50 ms. Throughput was 20 / 100 ms on the way, so 0.2 x 50 = 10 permits keep all
 * servers busy. With 600 permits at 3 s it dips to 240 (1.2 s), 96 (480 ms), and on down.
 *
 * Where the limit is far from reached, nobody is refused for a measurement: there the least of the
 * last half minute is the baseline, and nothing changes where nothing comes. With one permit in
 * use there is nothing to queue behind, and what is measured is the baseline. No dip goes below
 * the law's least limit: where that is more than the service takes, its queue is the baseline. Nor
 * is there one while much of what is in use is at Envoys that nobody hears of: those do not follow.
 *
 * A dip is followed by a wait, so that all of them take no more than a quarter of the throughput.
 * Servers may be lost in it, too, and steps alone would take half a minute to follow. So one dip
 * may begin early, where latency looks like queueing now and the last such suspicion was right; the
 * dip after it waits again.
 *
 * Against Envoy's measuring (a few permits for 50 requests, each minute): it costs nothing without
 * overload, else about a fifth of the throughput for a second or two each half minute; half of it
 * the first time. It finds a slower release within seconds.
 *
 * Source: BBR's windowed minimum and PROBE_RTT (Cardwell et al., ACM Queue 14, 2016), by shares
 * instead of four packets, since a service's queue is not ours alone to drain.
 */
export class MinRtt {
  #minRttMs: number | undefined;
  #measuredMs = Number.NEGATIVE_INFINITY;
  #holdMs = baselineMsMax;
  /** The least since then, to take over where the limit is not reached. */
  #leastMs: number | undefined;
  #leastFromMs = 0;
  #pool = emptyPool;
  #suspectCount = 0;
  #suspectSampleCount = 0;
  /** Something looked like queueing, by which a dip is due as soon as one may be. */
  #isDoubted = false;
  /** Whether the last dip found a shorter baseline. */
  #wasShorter = false;
  #dip: Dip | undefined;
  #dipCount = 0;
  #noDipUntilMs = Number.NEGATIVE_INFINITY;
  /** Whether the last dip began before that. */
  #wasEarly = false;
  #gapMs = dipGapMsMin;
  #settledMs = Number.NEGATIVE_INFINITY;
  #leftMs = Number.NEGATIVE_INFINITY;

  /** The baseline in milliseconds; undefined before anybody was served. */
  get minRttMs(): number | undefined {
    return this.#minRttMs;
  }

  /** Permits while a dip lasts, from 1; undefined outside of one. */
  get dipLimit(): number | undefined {
    return this.#dip?.level;
  }

  /** The same for critical requests; undefined where it is none of their business, too. */
  get criticalDipLimit(): number | undefined {
    return this.#dip?.holdsCritical === true ? this.#dip.level : undefined;
  }

  /**
   * What ends before that met another limit than the present one, or is one of the short ones
   * that end first: samples of it say nothing. Monotonic milliseconds; minus infinity: never.
   */
  get settledMs(): number {
    return this.#settledMs;
  }

  /** Dips begun until now. */
  get dipCount(): number {
    return this.#dipCount;
  }

  /** Begins with what somebody else has measured: it holds as if it had been measured now. */
  begin(rttMs: number, nowMs: number): void {
    this.#settle(rttMs, nowMs);
  }

  /**
   * Somebody went then without an answer, or may have: work for such callers may go on, and what
   * looks like a higher baseline in the next half minute may be that.
   */
  noteLeft(nowMs: number): void {
    this.#leftMs = nowMs;
  }

  /** Learns from a window; from that of a dip only where it lies within. */
  observe(window: WindowedSample, context: WindowContext): MinRttFinding {
    const isSettled = window.endMs >= this.#settledMs;
    if (this.#dip !== undefined) {
      const measured = this.#observeDip(this.#dip, window, isSettled);
      return measured === undefined ? { kind: "dipping" } : { kind: "measured", ...measured };
    }
    if (!isSettled) return { kind: "dipping" };
    this.#measure(window);
    this.#considerDip(window, context);
    return this.#dip === undefined ? { kind: "steady" } : { kind: "dipping" };
  }

  #measure({ rttMs, sampleCount, inFlightMax, endMs }: WindowedSample): void {
    if (rttMs === undefined) return;
    const pool = pooled(this.#pool, rttMs, sampleCount);
    const isEnough = pool.count >= measuredCountMin;
    this.#pool = isEnough ? emptyPool : pool;
    if (this.#minRttMs !== undefined && !isEnough) return;
    const measuredMs = pool.sumMs / pool.count;
    if (inFlightMax <= 1) {
      this.#settle(measuredMs, endMs);
      return;
    }
    if (this.#leastMs === undefined) this.#leastFromMs = endMs;
    this.#leastMs = Math.min(this.#leastMs ?? measuredMs, measuredMs);
    this.#minRttMs = Math.min(this.#minRttMs ?? measuredMs, measuredMs);
  }

  #considerDip(window: WindowedSample, { limit, limitMin, isSuspect }: WindowContext): void {
    const { inFlightMax, endMs, rttMs } = window;
    const isLate = isMostlyLate(window);
    const isSuspectedNow = this.#isSuspected(window, isSuspect || isLate);
    // A law steers on meanwhile, and suspects nothing where it has come to by a wrong baseline.
    const isSuspected = this.#isDoubted || isSuspectedNow;
    this.#isDoubted = isSuspected;
    const isOld = endMs - this.#measuredMs >= this.#holdMs;
    const inFlight = Math.min(limit, inFlightMax);
    const isReached = inFlightMax * (this.#isVerified ? 2 : firstReachRatio) >= limit;
    const isNeedless = !isReached && this.#suspectCount === 0;
    // What is out of reach goes on, and would look as if latency did not fall with the permits.
    if (window.isPartial === true) return;
    if (isNeedless || inFlight <= limitMin) {
      const isSeen = endMs - this.#leastFromMs >= this.#holdMs;
      if (isSeen && this.#leastMs !== undefined) this.#settle(this.#leastMs, endMs);
      this.#isDoubted = false;
      return;
    }
    const isEarly = endMs < this.#noDipUntilMs;
    if (!isOld && !isSuspected) return;
    if (isEarly && !(isSuspectedNow && this.#mayHurry)) return;
    // Where many gave up, the served are those who were quick: that is no latency to compare with.
    const before = isLate || rttMs === undefined ? undefined : { rttMs, inFlight };
    const known = this.#known(before, window.servedPerMs);
    this.#dipCount += 1;
    this.#isDoubted = false;
    this.#wasEarly = isEarly;
    this.#dip = {
      limit,
      limitMin,
      isSuspected,
      knownMs: this.#minRttMs,
      startMs: endMs,
      before,
      isDeep: false,
      holdsCritical: false,
      perMs: before === undefined ? 0 : before.inFlight / before.rttMs,
      ...nextLevel({ inFlight, limitMin, known, nowMs: endMs }),
    };
    this.#unsettle(endMs);
  }

  /** Whether the baseline was measured where nothing queues, and is no guess from first windows. */
  get #isVerified(): boolean {
    return Number.isFinite(this.#measuredMs);
  }

  /** Whether a dip may begin before its time: after one that kept it, and no suspicion in vain. */
  get #mayHurry(): boolean {
    return this.#isVerified && !this.#wasEarly && this.#gapMs === dipGapMsMin;
  }

  /** The most in use need not have been in use all the time, so what was served tells more. */
  #known(
    before: Before | undefined,
    servedPerMs = Number.POSITIVE_INFINITY,
  ): KnownService | undefined {
    const baselineMs = this.#minRttMs;
    if (before === undefined || baselineMs === undefined || !this.#isVerified) return undefined;
    return { baselineMs, perMs: Math.min(servedPerMs, before.inFlight / before.rttMs) };
  }

  /** Few samples scatter: two windows of a slow service alone would be suspected for nothing. */
  #isSuspected({ sampleCount, droppedCount }: WindowedSample, isSuspect: boolean): boolean {
    this.#suspectCount = isSuspect ? this.#suspectCount + 1 : 0;
    const before = isSuspect ? this.#suspectSampleCount : 0;
    this.#suspectSampleCount = isSuspect ? before + sampleCount + droppedCount : 0;
    return this.#suspectCount >= suspectCountMin && this.#suspectSampleCount >= measuredCountMin;
  }

  /**
   * Critical requests alone have more in use than a dip allows, although they are let in all the
   * same. Where a dip has met nothing else for three seconds, it holds for them, too: what they
   * find is a queue of their own, and a baseline that has it in it would make it ever longer.
   */
  noteAbove(nowMs: number): void {
    const dip = this.#dip;
    if (dip === undefined || dip.pool.count > 0) return;
    if (nowMs - Math.max(dip.levelMs, this.#settledMs) >= criticalDipMs) dip.holdsCritical = true;
  }

  /** @returns what was measured at the dip's end, else undefined */
  #observeDip(dip: Dip, window: WindowedSample, isSettled: boolean): Measurement | undefined {
    const { rttMs, sampleCount, droppedCount, inFlightMax, endMs } = window;
    if (window.isPartial === true) return this.#endDip(dip, endMs, undefined);
    // Requests from before the dip are still on their way: what they met is not the dip.
    if (isSettled && inFlightMax <= dip.level) {
      if (rttMs !== undefined) dip.pool = pooled(dip.pool, rttMs, sampleCount);
      dip.droppedCount += droppedCount;
    }
    const { count, sumMs } = dip.pool;
    const longMs = Math.max(dipMsMax, 4 * (dip.before?.rttMs ?? 0));
    const isLong = endMs - Math.max(dip.levelMs, this.#settledMs) >= longMs;
    const isLate = isMostlyLate({ sampleCount: count, droppedCount: dip.droppedCount });
    if (isLate && count + dip.droppedCount >= dipCountMin) {
      return this.#goDeeper(dip, endMs, undefined);
    }
    const isMeasured = count >= measuredCountMin || (isLong && count >= dipCountMin);
    if (!isMeasured) {
      if (isLong) this.#endDip(dip, endMs, undefined);
      return undefined;
    }
    const dipRttMs = sumMs / count;
    if (isClose(dip, dipRttMs) && count < closeCountMin && !isLong) return undefined;
    dip.perMs = Math.max(dip.perMs, dip.level / dipRttMs);
    this.#minRttMs = Math.min(this.#minRttMs ?? dipRttMs, dipRttMs);
    if (hasQueue(dip, dipRttMs)) return this.#goDeeper(dip, endMs, dipRttMs);
    const mayBeLeft = endMs - this.#leftMs < leftMsMax;
    if (mayBeLeft && isDoubtful(dip, dipRttMs) && !isLong) {
      dip.lastRttMs = dipRttMs;
      dip.pool = emptyPool;
      dip.droppedCount = 0;
      return undefined;
    }
    return this.#endDip(dip, endMs, { rttMs: dipRttMs, capacity: dip.perMs * dipRttMs });
  }

  /** Where it is at its lowest already, nobody is served in time even so. */
  #goDeeper(dip: Dip, nowMs: number, rttMs: number | undefined): Measurement | undefined {
    const { level, limitMin } = dip;
    if (level <= limitMin) return this.#endDip(dip, nowMs, { rttMs, capacity: level });
    const isKnown = rttMs === undefined || !isUnexpected(dip, rttMs);
    dip.isDeep = true;
    dip.before = rttMs === undefined ? undefined : { rttMs, inFlight: level };
    const known = isKnown ? this.#known(dip.before) : undefined;
    Object.assign(dip, nextLevel({ inFlight: level, limitMin, known, nowMs }));
    this.#unsettle(nowMs);
    return undefined;
  }

  #endDip(dip: Dip, nowMs: number, found: DipResult | undefined): Measurement | undefined {
    const lastedMs = nowMs - dip.startMs;
    if (isNews(dip, found)) this.#gapMs = dipGapMsMin;
    else if (dip.isSuspected) this.#gapMs = Math.min(baselineMsMax, this.#gapMs * 2);
    const lostMs = costMs(dip, lastedMs);
    this.#noDipUntilMs = nowMs + Math.max(this.#gapMs, lostMs / suspectedDipShareMax);
    // What the first one takes, no other one will: those after it verify, for half of the time that
    // they last, with the way back. So it is for the first that found a queue in the baseline.
    const isFirst = isShorter(dip, found) && !this.#wasShorter;
    this.#wasShorter = isShorter(dip, found);
    const isCheap = !this.#isVerified || isFirst || lostMs < lastedMs / 2;
    const nextMs = isCheap ? (nowMs - dip.levelMs) / 2 : lastedMs;
    this.#holdMs = Math.max(baselineMsMax, nextMs / dipShareMax);
    this.#dip = undefined;
    this.#suspectCount = 0;
    this.#suspectSampleCount = 0;
    if (found?.rttMs !== undefined) this.#settle(found.rttMs, nowMs);
    this.#unsettle(nowMs);
    if (found === undefined) return undefined;
    return { capacity: Math.max(1, found.capacity), isConfirmed: isConfirmed(dip, found) };
  }

  #settle(rttMs: number, nowMs: number): void {
    this.#minRttMs = rttMs;
    this.#measuredMs = nowMs;
    this.#leastMs = undefined;
    this.#pool = emptyPool;
  }

  #unsettle(nowMs: number): void {
    this.#settledMs = nowMs + settleRttCount * (this.#minRttMs ?? 0);
  }
}
