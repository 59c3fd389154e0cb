import type { WindowedSample } from "./concurrency-limit.js";
import {
  type Before,
  costMs,
  emptyPool,
  hasQueue,
  isClose,
  isConfirmed,
  isDoubtful,
  isNews,
  isShorter,
  isUnexpected,
  type KnownService,
  type LimitProbe,
  nextLevel,
  type ProbeResult,
  pooled,
  provesLoss,
} from "./limit-probe.js";

/** How long a baseline is used before it is verified again. */
export const baselineMsMax = 30_000;

/** Minimum time between two probes. Doubles up to `baselineMsMax` while they find nothing new. */
export const probeGapMsMin = 2_500;

/** Maximum time at one level of a probe, or four round trips if they are longer. */
export const probeMsMax = 5_000;

/** Maximum part of the throughput that probes may cost if the baseline is only old. */
export const probeShareMax = 0.05;

/** Maximum part of the throughput that all probes may cost. */
export const suspectedProbeShareMax = 0.25;

/** Served requests that make a measurement. A long probe ends with fewer. */
export const measuredCountMin = 50;

/** Served requests after which a probe decides, even if the result is close. */
export const closeCountMin = 150;

/** How long critical requests may exceed the level of a probe that has nothing else to measure. */
const criticalProbeMs = 3_000;

/** Minimum number of served requests for any measurement of a probe. */
const probeCountMin = 10;

/** Above this ratio of drops, a window shows overload, whatever its latencies. */
const droppedRatioMax = 0.1;

/** Consecutive windows that must look like queueing before a probe begins. */
const suspectCountMin = 2;

/** The first probe waits until this many times the use reaches the limit: use may still grow. */
const firstReachRatio = 1.25;

/** How long after a caller left without a response the upstream may still work for such callers. */
export const leftMsMax = 30_000;

/** Round trips after a change of the limit until samples describe the new limit alone. */
const settleRttCount = 3;

/** What the algorithm says about a window. */
interface WindowContext {
  /** The limit of the algorithm, without the probe. */
  readonly limit: number;
  /** Minimum level of a probe: a whole number from 1. */
  readonly limitMin: number;
  /** Whether there is more queueing than the algorithm can correct in steps. */
  readonly isSuspect: boolean;
}

/** What a window means for the algorithm. */
export type MinRttFinding =
  /** It describes the limit of the algorithm. */
  | { readonly kind: "steady" }
  /** It belongs to a probe or to the time right after one, not to the limit of the algorithm. */
  | { readonly kind: "probing" }
  /** A probe is over. */
  | ({ readonly kind: "measured" } & Measurement);

/** What a probe has measured. */
export interface Measurement {
  /** Permits that keep all servers busy without a queue, by Little's law: throughput x baseline. */
  readonly capacity: number;
  /** Whether the baseline is about the same as before. */
  readonly isConfirmed: boolean;
}

/** Whether so many requests were dropped that the latencies of the others say too little. */
export function isMostlyLate(counts: {
  readonly sampleCount: number;
  readonly droppedCount: number;
}): boolean {
  return counts.droppedCount > droppedRatioMax * (counts.sampleCount + counts.droppedCount);
}

/**
 * The round trip without queueing, learned from windows of ordinary requests.
 *
 * A lower measurement replaces the baseline at once, since queueing only adds time. A higher one
 * may be a queue or a slower release. Only fewer permits in use distinguish them: a queue becomes
 * shorter, a slower release stays slow. If the limit is reached and the baseline is old, or
 * latency looks like queueing for two windows, the limit is lowered for a moment: a **probe**. Its
 * first level is 0.4 of the permits in use, or 0.8 of those that keep all servers busy
 * (`nextLevel`). The baseline is measured there. While
 *
 * ```
 * rtt(probe) / rtt(before) < 1.15 * permits(probe) / permits(before)
 * ```
 *
 * latency falls with the permits and throughput does not: there is still a queue, and the probe
 * goes to 0.6 of its level. At a level that verifies a known baseline, the latency alone decides.
 * If more than a tenth of the callers give up, latencies are those of the patient ones alone, and
 * the probe goes to 0.4 of its level.
 *
 * Example: 20 permits at 100 ms. 8 permits take 50 ms, and 50 / 100 is more than 1.15 x 0.4, so
 * the baseline is 50 ms. Throughput was 20 / 100 ms above, so 0.2 x 50 = 10 permits keep all
 * servers busy. From 600 permits at 3 s, the levels are 240 (1.2 s), 144 (720 ms), and so on.
 *
 * A suspected probe begins at 1.5 times the permits that keep all servers busy. A queue there
 * means that servers were lost. The baseline stays, and the probe ends without a level that costs
 * throughput (`provesLoss`).
 *
 * If the limit is far from reached, no request is refused for a measurement. The baseline is then
 * the lowest latency of the last half minute, and does not change without requests. With one
 * permit in use there is no queue, so the measurement is the baseline. No probe goes below the
 * algorithm's minimum or below what each Envoy keeps (`WindowedSample.keptCount`). If that is more
 * than the service takes, its queue is part of the baseline. There is no probe while a large part
 * of the permits belongs to Envoys that send no reports.
 *
 * After a probe there is a pause, so that all probes take at most a quarter of the throughput.
 * Servers may fail during the pause, and steps alone would take half a minute to follow. So one
 * probe may begin early, if latency looks like queueing and the last such suspicion was right.
 *
 * Compared with Envoy's measurement (a few permits for 50 requests, each minute), it costs nothing
 * without overload, otherwise about a fifth of the throughput for a second or two each half
 * minute, and up to 40 % the first time. It finds a slower release within seconds.
 *
 * Source: BBR's windowed minimum and PROBE_RTT (Cardwell et al., ACM Queue 14, 2016), by shares
 * instead of four packets, since a service's queue is not ours alone to drain.
 */
export class MinRtt {
  #minRttMs: number | undefined;
  #measuredMs = Number.NEGATIVE_INFINITY;
  #holdMs = baselineMsMax;
  /** Minimum since then. It becomes the baseline if the limit is not reached. */
  #leastMs: number | undefined;
  #leastFromMs = 0;
  #pool = emptyPool;
  #suspectCount = 0;
  #suspectSampleCount = 0;
  /** Something looked like queueing: a probe is due as soon as one is allowed. */
  #isDoubted = false;
  /** Whether the last probe found a shorter baseline. */
  #wasShorter = false;
  #probe: LimitProbe | undefined;
  #probeCount = 0;
  #noProbeUntilMs = Number.NEGATIVE_INFINITY;
  /** Whether the last probe began before that. */
  #wasEarly = false;
  #gapMs = probeGapMsMin;
  #settledMs = Number.NEGATIVE_INFINITY;
  #leftMs = Number.NEGATIVE_INFINITY;

  /** The baseline in milliseconds; undefined until a request was served. */
  get minRttMs(): number | undefined {
    return this.#minRttMs;
  }

  /** Permits during a probe, from 1; undefined outside of a probe. */
  get probeLimit(): number | undefined {
    return this.#probe?.level;
  }

  /** The same for critical requests; undefined if the probe does not apply to them. */
  get criticalProbeLimit(): number | undefined {
    return this.#probe?.holdsCritical === true ? this.#probe.level : undefined;
  }

  /**
   * Samples that end before this time describe another limit, or only the shortest requests.
   * Monotonic milliseconds; minus infinity: there are none.
   */
  get settledMs(): number {
    return this.#settledMs;
  }

  /** Number of probes begun. */
  get probeCount(): number {
    return this.#probeCount;
  }

  /** Begins with a baseline that another process measured, as if it had been measured now. */
  begin(rttMs: number, nowMs: number): void {
    this.#settle(rttMs, nowMs);
  }

  /**
   * A caller left without a response then, or may have. The upstream may still work for such
   * callers, and a higher baseline in the next half minute may be a result of that.
   */
  noteLeft(nowMs: number): void {
    this.#leftMs = nowMs;
  }

  /** Learns from a window. During a probe, only windows within the current level count. */
  observe(window: WindowedSample, context: WindowContext): MinRttFinding {
    const isSettled = window.endMs >= this.#settledMs;
    if (this.#probe !== undefined) {
      const measured = this.#observeProbe(this.#probe, window, isSettled);
      return measured === undefined ? { kind: "probing" } : { kind: "measured", ...measured };
    }
    if (!isSettled) return { kind: "probing" };
    this.#measure(window);
    this.#considerProbe(window, context);
    return this.#probe === undefined ? { kind: "steady" } : { kind: "probing" };
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

  #considerProbe(window: WindowedSample, { limit, limitMin, isSuspect }: WindowContext): void {
    const { inFlightMax, endMs, rttMs } = window;
    const isLate = isMostlyLate(window);
    const isSuspectedNow = this.#isSuspected(window, isSuspect || isLate);
    // The algorithm may reach a limit that looks right by a wrong baseline, and suspects nothing.
    const isSuspected = this.#isDoubted || isSuspectedNow;
    this.#isDoubted = isSuspected;
    const isOld = endMs - this.#measuredMs >= this.#holdMs;
    const inFlight = Math.min(limit, inFlightMax);
    const isReached = inFlightMax * (this.#isVerified ? 2 : firstReachRatio) >= limit;
    const isNeedless = !isReached && this.#suspectCount === 0;
    // Envoys out of reach do not follow, so latency would not seem to fall with the permits.
    if (window.isPartial === true) return;
    if (isNeedless || inFlight <= limitMin) {
      const isSeen = endMs - this.#leastFromMs >= this.#holdMs;
      if (isSeen && this.#leastMs !== undefined) this.#settle(this.#leastMs, endMs);
      this.#isDoubted = false;
      return;
    }
    const isEarly = endMs < this.#noProbeUntilMs;
    if (!isOld && !isSuspected) return;
    if (isEarly && !(isSuspectedNow && this.#mayHurry)) return;
    // If many gave up, only fast requests were served: their latency is not comparable.
    const before = isLate || rttMs === undefined ? undefined : { rttMs, inFlight };
    const known = this.#known(before, window.servedPerMs);
    this.#probeCount += 1;
    this.#isDoubted = false;
    this.#wasEarly = isEarly;
    this.#probe = {
      limit,
      limitMin,
      isSuspected,
      knownMs: this.#minRttMs,
      startMs: endMs,
      before,
      isDeep: false,
      holdsCritical: false,
      perMs: before === undefined ? 0 : throughputOf(before, window.servedPerMs),
      ...nextLevel({ inFlight, limitMin, known, nowMs: endMs, hadQueue: false }),
    };
    this.#unsettle(endMs);
  }

  /** Whether the baseline was measured without a queue, and is not a guess from first windows. */
  get #isVerified(): boolean {
    return Number.isFinite(this.#measuredMs);
  }

  /** Whether a probe may begin early: the last one was not early, and its suspicion was right. */
  get #mayHurry(): boolean {
    return this.#isVerified && !this.#wasEarly && this.#gapMs === probeGapMsMin;
  }

  #known(before: Before | undefined, servedPerMs?: number): KnownService | undefined {
    const baselineMs = this.#minRttMs;
    if (before === undefined || baselineMs === undefined || !this.#isVerified) return undefined;
    return { baselineMs, perMs: throughputOf(before, servedPerMs) };
  }

  /** Two windows of a slow service have few samples, which scatter too much for a suspicion. */
  #isSuspected({ sampleCount, droppedCount }: WindowedSample, isSuspect: boolean): boolean {
    this.#suspectCount = isSuspect ? this.#suspectCount + 1 : 0;
    const before = isSuspect ? this.#suspectSampleCount : 0;
    this.#suspectSampleCount = isSuspect ? before + sampleCount + droppedCount : 0;
    return this.#suspectCount >= suspectCountMin && this.#suspectSampleCount >= measuredCountMin;
  }

  /**
   * Critical requests may exceed a probe. If they alone use more than its level for three seconds,
   * the probe also applies to them. Otherwise the baseline would include the queue that they form,
   * and the queue would become longer with each probe.
   */
  noteAbove(nowMs: number): void {
    const probe = this.#probe;
    if (probe === undefined || probe.pool.count > 0) return;
    if (nowMs - Math.max(probe.levelMs, this.#settledMs) >= criticalProbeMs)
      probe.holdsCritical = true;
  }

  /** @returns the measurement if the probe ends, otherwise undefined */
  #observeProbe(
    probe: LimitProbe,
    window: WindowedSample,
    isSettled: boolean,
  ): Measurement | undefined {
    const { rttMs, sampleCount, droppedCount, inFlightMax, endMs } = window;
    if (window.isPartial === true) return this.#endProbe(probe, endMs, undefined);
    // Requests from before the probe are still in flight, and do not describe the probe.
    if (isSettled && inFlightMax <= probe.level) {
      if (rttMs !== undefined) probe.pool = pooled(probe.pool, rttMs, sampleCount);
      probe.droppedCount += droppedCount;
    }
    const { count, sumMs } = probe.pool;
    const longMs = Math.max(probeMsMax, 4 * (probe.before?.rttMs ?? 0));
    const isLong = endMs - Math.max(probe.levelMs, this.#settledMs) >= longMs;
    const isLate = isMostlyLate({ sampleCount: count, droppedCount: probe.droppedCount });
    if (isLate && count + probe.droppedCount >= probeCountMin) {
      return this.#goDeeper(probe, endMs, undefined);
    }
    const isMeasured = count >= measuredCountMin || (isLong && count >= probeCountMin);
    if (!isMeasured) {
      if (isLong) this.#endProbe(probe, endMs, undefined);
      return undefined;
    }
    const probeRttMs = sumMs / count;
    if (isClose(probe, probeRttMs) && count < closeCountMin && !isLong) return undefined;
    probe.perMs = Math.max(probe.perMs, probe.level / probeRttMs);
    this.#minRttMs = Math.min(this.#minRttMs ?? probeRttMs, probeRttMs);
    if (hasQueue(probe, probeRttMs)) {
      if (!this.#isVerified || !provesLoss(probe)) {
        return this.#goDeeper(probe, endMs, probeRttMs);
      }
      const { knownMs = probeRttMs } = probe;
      const capacity = (knownMs * probe.level) / probeRttMs;
      return this.#endProbe(probe, endMs, { rttMs: knownMs, capacity });
    }
    const mayBeLeft = endMs - this.#leftMs < leftMsMax;
    if (mayBeLeft && isDoubtful(probe, probeRttMs) && !isLong) {
      probe.lastRttMs = probeRttMs;
      probe.pool = emptyPool;
      probe.droppedCount = 0;
      return undefined;
    }
    return this.#endProbe(probe, endMs, { rttMs: probeRttMs, capacity: probe.perMs * probeRttMs });
  }

  /** Goes to a lower level. At the minimum, the probe ends: not even that is served in time. */
  #goDeeper(probe: LimitProbe, nowMs: number, rttMs: number | undefined): Measurement | undefined {
    const { level, limitMin } = probe;
    if (level <= limitMin) return this.#endProbe(probe, nowMs, { rttMs, capacity: level });
    const isKnown = rttMs === undefined || !isUnexpected(probe, rttMs);
    probe.isDeep = true;
    probe.before = rttMs === undefined ? undefined : { rttMs, inFlight: level };
    const known = isKnown ? this.#known(probe.before) : undefined;
    const hadQueue = isKnown && rttMs !== undefined;
    Object.assign(probe, nextLevel({ inFlight: level, limitMin, known, nowMs, hadQueue }));
    this.#unsettle(nowMs);
    return undefined;
  }

  #endProbe(
    probe: LimitProbe,
    nowMs: number,
    found: ProbeResult | undefined,
  ): Measurement | undefined {
    const lastedMs = nowMs - probe.startMs;
    if (isNews(probe, found)) this.#gapMs = probeGapMsMin;
    else if (probe.isSuspected) this.#gapMs = Math.min(baselineMsMax, this.#gapMs * 2);
    const lostMs = costMs(probe, lastedMs);
    this.#noProbeUntilMs = nowMs + Math.max(this.#gapMs, lostMs / suspectedProbeShareMax);
    // The first probe costs more than the next ones, which only verify: about half of this time,
    // including the return. The same applies to the first one that found a queue in the baseline.
    const isFirst = isShorter(probe, found) && !this.#wasShorter;
    this.#wasShorter = isShorter(probe, found);
    const isCheap = !this.#isVerified || isFirst || lostMs < lastedMs / 2;
    const nextMs = isCheap ? (nowMs - probe.levelMs) / 2 : lastedMs;
    this.#holdMs = Math.max(baselineMsMax, nextMs / probeShareMax);
    this.#probe = undefined;
    this.#suspectCount = 0;
    this.#suspectSampleCount = 0;
    if (found?.rttMs !== undefined) this.#settle(found.rttMs, nowMs);
    this.#unsettle(nowMs);
    if (found === undefined) return undefined;
    return { capacity: Math.max(1, found.capacity), isConfirmed: isConfirmed(probe, found) };
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

/** The maximum in use may not have been in use all the time, so the rate served is more precise. */
function throughputOf({ inFlight, rttMs }: Before, servedPerMs = Number.POSITIVE_INFINITY): number {
  return Math.min(servedPerMs, inFlight / rttMs);
}
