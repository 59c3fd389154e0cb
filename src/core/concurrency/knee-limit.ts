import { busyQueue, queueMin } from "./busy-queue.js";
import {
  type ConcurrencyLimit,
  type ConcurrencySample,
  type Demand,
  type WindowedSample,
  withHeadroom,
} from "./concurrency-limit.js";
import { type KneeFit, LatencyByLevel } from "./latency-by-level.js";
import { type LimitBounds, withinBounds } from "./limit-bounds.js";
import { ThroughputFloor } from "./throughput-floor.js";

/**
 * A step takes at least `stepMsMin` and `stepCountMin` samples. It also takes two mean round trips,
 * up to `stepRttsMsMax`: the first requests to end are the short ones, and represent only those.
 */
const stepMsMin = 500;
const stepCountMin = 10;
const stepRttCount = 2;
const stepRttsMsMax = 10_000;

/**
 * Minimum time of a step before a knee was found, and the limit from which it applies. A process
 * that starts refuses requests that its service has served all along, until the limit has grown.
 */
const startStepMsMin = 100;
const startMin = 50;

/** Until this many times the requests in flight have ended, those in flight inflate the load. */
const startEndedRatio = 10;

/** Ratio of the limit, without its queue, to the knee. */
const marginRatio = 1.1;

/** Part of the permits in use that a probe step keeps, and of a known knee that all steps keep. */
const probeRatio = 0.7;
const probeKneeRatio = 0.5;

/** Probe steps that show whether latency falls, and the pause after a probe, in probe lengths. */
const probeStepsMin = 2;
const probeRestRatio = 3;

/**
 * A service is deserted if `desertedRatio` of its callers leave without a response, or more than
 * `desertedLateRatio` after four service times: many that leave early have their own reasons.
 */
const desertedRatio = 0.9;
const desertedLateRatio = 0.5;
const lateServiceCount = 4;

/**
 * If more than this part of the callers leaves that late, the queue is longer than their patience.
 * This counts for `impatientMs`, in milliseconds.
 */
const impatientRatio = 0.1;
const impatientMs = 30_000;

/** The same as `probeRatio` for a deserted service, which has little to lose. */
const desertedProbeRatio = 0.4;

/**
 * Steps at `min` in which callers still leave, until this is taken for their normal behavior. Each
 * such probe doubles the pause after it, at most `vainCountMax` times.
 */
const lowestStepsMin = 3;
const vainCountMax = 5;

/** Ratio of the lowest plausible knee to the likeliest one from which the knee counts as known. */
const knownRatio = 0.65;

/** If the knee exceeds this multiple of the one that the last probe found, a new probe begins. */
const provenRatio = 1.5;

/** Part of that knee that still counts after each step, so that it is verified after minutes. */
const provenKept = 0.995;

/** Weight of one request in `#heldRatio`. */
const heldWeight = 0.01;

/** Growth if no queue is seen: fast below ten permits and at the start, slower from there on. */
const smallMax = 10;
const fastGrowthRatio = 2;
const growthRatio = 1.5;

/** Below this limit it grows as long as the knee may be above every level that was seen. */
const fewestMax = 4;

/** Above this ratio of arriving to ending requests, the limit is far too low, and doubles. */
const starvedLoadRatio = 10;

/** Above this ratio, a step below `fewestMax` permits waits for two samples of each permit. */
const fewestLoadRatio = 40;

/** Part of the limit in use from which it counts as reached. */
const reachedRatio = 0.8;

/** The same under overload: lower classes are refused from here, so use may not rise higher. */
const classRatio = 0.74;

/** If it is not reached, it falls to this multiple of what is in use, but not below `spareMin`. */
const spareRatio = 4;
const spareMin = 50;

/** Load above which requests are refused, so that a probe is worth its cost. */
const busyLoadRatio = 1.1;

/** Part of critical requests that may get no permit although the service can carry them. */
const unluckyRatio = 0.0003;

/** Demand from which critical requests alone fill the service, and no queue is long enough. */
const criticalDemandMax = 0.95;

/** Demand from which most places of a queue would go to requests that could as well be refused. */
const hopelessDemandMin = 1.2;

/**
 * Sets the limit by the knee: the lowest number in flight that keeps all workers busy. The knee
 * shows in latencies by the number of requests in flight when each began (`LatencyByLevel`).
 *
 * limit = 1.1 * knee + queue, where the queue keeps the workers busy at the load (`busyQueue`).
 *
 * Example: 10 workers at three times their capacity: 11 + 2 = 13 permits, and 65 ms for requests
 * that take 50 ms without a queue.
 *
 * If requests wait for permits anyway, and take each one as soon as it is free, a queue at the
 * service only adds latency. It is then at most the square root of the knee: so many requests may
 * end at once by chance.
 *
 * - **Growth.** If the limit is reached, it grows by a half while no queue is seen at any level, or
 *   it is below half of the likeliest knee, or below four while the knee may be above all levels
 *   seen. It doubles below 10, or if ten times as many requests arrive as end. From 50 on it
 *   doubles in steps of 100 ms, until a knee is found or a probe begins. Below four, if forty times
 *   as many arrive as end, a step takes two samples of each permit: ten samples of one permit take
 *   20 s if a request takes 2 s. If the limit is not reached, it falls to four times the permits in
 *   use, but not below 50.
 * - **Probe.** If no sample of the last half minute had few requests in flight, or none ever had
 *   because the limit was too high from the start, the limit is lowered to 0.7 of the permits in
 *   use, step by step, until the knee shows. This costs no throughput while the service has a
 *   queue, and below the knee a few round trips are enough. The probe ends if throughput falls, and
 *   at half of a known knee.
 * - **Return.** If throughput falls with the limit under overload, it returns (`ThroughputFloor`).
 *
 * If a caller leaves without a response, at its deadline or without one, the request would have
 * taken longer. Its time counts, but no completion, as for censored samples of an exponential
 * distribution. If nearly all callers leave without a deadline, or most of them after four service
 * times, levels mean nothing, since a service works on for callers who have left. The limit is then
 * probed down to `min` until callers are served, and learning restarts from there. Callers who
 * leave with one request in flight as with many have reasons of their own.
 *
 * Critical requests may exceed the limit by what may arrive at once by chance, so that three in ten
 * thousand of them get no permit: by 3 * sqrt(limit), or by the queue that is as unlikely at their
 * own demand, if that is longer. Only 3 * sqrt(limit) is allowed at a demand of 0.95, where they
 * fill the service alone, and for half a minute after more than a tenth of the callers left late:
 * the longer queue exceeds their patience, and a service works on for callers who have left. From a
 * demand of 1.2 on, neither is allowed.
 *
 * Use it if equal requests take the same time at any number in flight below the knee, this process
 * sees each of them, and capacity is unknown or changes. Do not use it if latency comes from a
 * dependency that lower concurrency does not relieve, or if only reports of Envoys are available:
 * they have no levels.
 *
 * Source: TCP BBR (both the throughput and the time without a queue, each where it shows); M/M/1
 * for the queue of critical requests.
 */
export class KneeLimit implements ConcurrencyLimit {
  readonly #limits: LimitBounds;
  readonly #levels = new LatencyByLevel();
  #limit: number;
  /** Permits during a probe. */
  #probe: number | undefined;
  #probeCount = 0;
  #probeSteps = 0;
  #probeMs = 0;
  #probeMin = 0;
  /** Whether callers that left caused it, its steps at `min`, and such probes in vain in a row. */
  #isDeserted = false;
  #lowestSteps = 0;
  #vainCount = 0;
  /** Whether callers recently left after a long wait, and until when that counts. */
  #isImpatient = false;
  #impatientUntilMs = Number.NEGATIVE_INFINITY;
  #noProbeUntilMs = Number.NEGATIVE_INFINITY;
  #fit: KneeFit | undefined;
  /** Whether a knee was found since learning began. */
  #isFound = false;
  /** The knee that the last probe found; it fades. */
  #provenKnee = 0;
  #demand: Demand | undefined;
  /** A step counts requests that began after this time, and how many of them have ended. */
  #fromMs = Number.NEGATIVE_INFINITY;
  #count = 0;
  /** Samples so far. */
  #endedCount = 0;
  #leftCount = 0;
  #firstMs = 0;
  #inFlightMax = 0;
  #rttSumMs = 0;
  #throughputFloor = new ThroughputFloor();
  /** Part of the requests that ended while others waited for a permit. */
  #heldRatio = 0;

  constructor(limits: LimitBounds) {
    this.#limits = limits;
    this.#limit = withinBounds(limits, limits.initial);
  }

  get limit(): number {
    return Math.max(1, Math.floor(this.#probe ?? this.#limit));
  }

  get steadyLimit(): number {
    return Math.floor(this.#limit);
  }

  get baselineMs(): number | undefined {
    return this.#isFound ? this.#fit?.serviceMs : undefined;
  }

  get busyCount(): number {
    return this.#isFound && this.#probe === undefined ? marginRatio * (this.#fit?.knee ?? 0) : 0;
  }

  get criticalLimit(): number {
    const demandRatio = this.#demand?.criticalRatio ?? Number.POSITIVE_INFINITY;
    if (this.#isImpatient || demandRatio >= criticalDemandMax) {
      const most = demandRatio < hopelessDemandMin ? withHeadroom(this.limit) : this.limit;
      return Math.floor(most);
    }
    const base = this.#isFound ? this.#limit : (this.#probe ?? this.#limit);
    const luck = 2 * Math.log(1 / unluckyRatio);
    const queue = luck / Math.log(1 / Math.max(demandRatio, Number.MIN_VALUE));
    return Math.floor(Math.max(withHeadroom(base), base + queue));
  }

  startFrom(limit: number): void {
    if (this.#fit === undefined) this.#settle(limit);
  }

  record({ startMs, endMs, inFlight, outcome, isLeft, demand }: ConcurrencySample): void {
    if (outcome === "ignore" && isLeft !== true) return;
    const rttMs = endMs - startMs;
    this.#levels.add(inFlight, rttMs, isLeft);
    this.#endedCount += 1;
    this.#demand = demand;
    const { waitingCount = 0 } = demand ?? {};
    this.#heldRatio += heldWeight * ((waitingCount > 0 ? 1 : 0) - this.#heldRatio);
    if (this.#count > 0) this.#throughputFloor.ended();
    // A request that began earlier was subject to another limit.
    if (startMs < this.#fromMs) return;
    if (this.#count === 0) {
      this.#firstMs = endMs;
      this.#throughputFloor.begin(endMs);
    }
    this.#count += 1;
    if (isLeft === true && outcome === "ignore") this.#leftCount += 1;
    this.#rttSumMs += rttMs;
    this.#inFlightMax = Math.max(this.#inFlightMax, inFlight);
    const rttsMs = (stepRttCount * this.#rttSumMs) / this.#count;
    const least = this.#isGrowingFast ? startStepMsMin : stepMsMin;
    const stepMs = Math.max(least, Math.min(stepRttsMsMax, rttsMs));
    if (this.#count < this.#stepCount || endMs - this.#firstMs < stepMs) return;
    this.#step(endMs);
    this.#count = 0;
    this.#leftCount = 0;
    this.#rttSumMs = 0;
    this.#inFlightMax = 0;
  }

  /** Does nothing: windows of a fleet have no levels. */
  update(_window: WindowedSample): void {}

  facts(): Readonly<Record<string, number>> {
    const fit = this.#fit;
    return {
      probeCount: this.#probeCount,
      ...(fit === undefined ? {} : { kneeCount: fit.knee, serviceMs: fit.serviceMs }),
    };
  }

  #step(nowMs: number): void {
    const isImpatient = this.#leftCount > impatientRatio * this.#count && this.#isLate();
    if (isImpatient) this.#impatientUntilMs = nowMs + impatientMs;
    this.#isImpatient = nowMs < this.#impatientUntilMs;
    const fit = this.#levels.fit();
    this.#levels.age(nowMs - this.#firstMs, this.#count, fit?.knee ?? Number.POSITIVE_INFINITY);
    if (fit === undefined || this.#looksDeserted()) {
      this.#lookWhoIsServed(nowMs);
      return;
    }
    if (this.#isDeserted) {
      this.#beginAnew(nowMs);
      return;
    }
    this.#fit = fit;
    const isKnown = !fit.isOpen && fit.lowest >= knownRatio * fit.knee;
    if (isKnown) {
      this.#isFound = true;
      this.#settle(
        Math.max(this.#throughputFloor.floor, marginRatio * fit.knee + this.#queue(fit.knee)),
      );
    }
    if (this.#probe !== undefined) {
      this.#goOn(fit, isKnown, nowMs);
      return;
    }
    if (this.#isBusy) {
      if (this.#leftCount === 0) this.#provenKnee *= provenKept;
      this.#keepThroughput(fit, nowMs);
    }
    if (this.#isUnproven(fit) && nowMs >= this.#noProbeUntilMs) this.#startProbe(nowMs);
    else if (!isKnown) this.#find(fit, nowMs);
  }

  /** Whether requests are refused at a knee much higher than the one that the last probe found. */
  #isUnproven({ knee, isFlat }: KneeFit): boolean {
    const isGrowing = isFlat && this.#isReached;
    return this.#isBusy && !isGrowing && knee > provenRatio * this.#provenKnee;
  }

  #keepThroughput({ dispersion }: KneeFit, nowMs: number): void {
    this.#throughputFloor.keep({
      nowMs,
      limit: this.#limit,
      inFlightMax: this.#inFlightMax,
      dispersion,
    });
    this.#settle(Math.max(this.#limit, this.#throughputFloor.floor));
  }

  /** Whether a limit of at least `startMin` is reached, before any knee was found or probed. */
  get #isGrowingFast(): boolean {
    const isNew = !this.#isFound && this.#probeCount === 0;
    return isNew && this.#limit >= startMin && this.#isReached;
  }

  /** Samples per step: fewer if the limit is far too low and nothing else was learned yet. */
  get #stepCount(): number {
    const isStarved = this.#limit < fewestMax && this.#loadRatio > fewestLoadRatio;
    const hasLearned = this.#isFound || this.#probe !== undefined || this.#leftCount > 0;
    return isStarved && !hasLearned ? stepRttCount * this.limit : stepCountMin;
  }

  get #isReached(): boolean {
    return this.#inFlightMax >= reachedRatio * this.steadyLimit;
  }

  /** Whether more requests arrive than are served. */
  get #isBusy(): boolean {
    const isEarly = this.#endedCount < startEndedRatio * this.#inFlightMax;
    if (this.#isGrowingFast && isEarly) return false;
    return this.#loadRatio > busyLoadRatio;
  }

  get #loadRatio(): number {
    return this.#demand?.loadRatio ?? 0;
  }

  #looksDeserted(): boolean {
    if (this.#leftCount >= desertedRatio * this.#count) return true;
    return this.#leftCount > desertedLateRatio * this.#count && this.#isLate();
  }

  /** Whether requests, or callers that left, took much longer than the service time. */
  #isLate(): boolean {
    const { serviceMs = Number.POSITIVE_INFINITY } = this.#fit ?? {};
    return this.#rttSumMs > lateServiceCount * serviceMs * this.#count;
  }

  /** Probes while callers leave and nothing else can be learned, until some are served. */
  #lookWhoIsServed(nowMs: number): void {
    if (this.#probe === undefined && nowMs < this.#noProbeUntilMs) return;
    this.#isDeserted = true;
    if (this.#probe === undefined) {
      this.#startProbe(nowMs);
    } else if (this.limit > this.#limits.min) {
      this.#lookAtLess(nowMs);
    } else if (this.#leftCount === this.#count && this.#fit !== undefined) {
      // No caller is served any more: the service is down, and there is nothing to lose.
    } else if (this.#lowestSteps < lowestStepsMin) {
      this.#lowestSteps += 1;
    } else {
      this.#vainCount = Math.min(vainCountMax, this.#vainCount + 1);
      this.#endProbe(nowMs);
      this.#isDeserted = false;
    }
  }

  /** Restarts learning when callers are served again: earlier samples no longer describe it. */
  #beginAnew(nowMs: number): void {
    this.#isDeserted = false;
    this.#vainCount = 0;
    this.#isFound = false;
    this.#settle(this.limit);
    this.#levels.clear();
    this.#throughputFloor = new ThroughputFloor();
    this.#endProbe(nowMs);
    this.#noProbeUntilMs = nowMs;
  }

  /** Grows, begins a probe, or falls if it is not in use. */
  #find(fit: KneeFit, nowMs: number): void {
    const inFlightMax = this.#inFlightMax;
    const isReached = this.#isReached;
    const isBusy = isReached || this.#isBusy;
    // So far below the likeliest knee, or with so few permits, a probe would learn nothing.
    const isFewest = this.#limit < fewestMax && fit.isOpen;
    const isBelow = isFewest || this.#limit < probeKneeRatio * fit.knee;
    if (!fit.isFlat && !(isBelow && isReached) && (!fit.isOpen || isBusy)) {
      if (nowMs < this.#noProbeUntilMs) return;
      this.#startProbe(nowMs);
    } else if (isReached || (this.#isBusy && inFlightMax >= classRatio * this.#limit)) {
      const isSmall = this.#limit < smallMax || this.#loadRatio > starvedLoadRatio;
      const isFast = this.#isGrowingFast || isSmall;
      this.#settle(this.#limit * (isFast ? fastGrowthRatio : growthRatio));
    } else {
      this.#settle(Math.min(this.#limit, Math.max(spareMin, spareRatio * inFlightMax)));
    }
  }

  /** Ends a step of a probe: goes lower, or ends the probe. */
  #goOn(fit: KneeFit, isKnown: boolean, nowMs: number): void {
    this.#probeSteps += 1;
    const isLowest = this.limit <= Math.max(this.#limits.min, this.#probeMin);
    const isEnough = fit.isFlatter && this.#probeSteps >= probeStepsMin;
    const isOver = isLowest || isEnough || this.#throughputFloor.hasFallen(nowMs);
    if (!isKnown && !fit.isFlat && !isOver) {
      this.#lookAtLess(nowMs);
      return;
    }
    this.#provenKnee = fit.knee;
    this.#endProbe(nowMs);
  }

  #startProbe(nowMs: number): void {
    this.#probeCount += 1;
    this.#probeSteps = 0;
    this.#lowestSteps = 0;
    this.#probeMs = nowMs;
    const isKneeKnown = this.#isFound && !this.#isDeserted;
    this.#probeMin = isKneeKnown ? probeKneeRatio * (this.#fit?.knee ?? 0) : 0;
    this.#lookAtLess(nowMs);
  }

  #endProbe(nowMs: number): void {
    const restRatio = probeRestRatio * 2 ** this.#vainCount;
    this.#noProbeUntilMs = nowMs + restRatio * (nowMs - this.#probeMs);
    this.#probe = undefined;
    this.#fromMs = nowMs;
  }

  #settle(limit: number): void {
    this.#limit = withinBounds(this.#limits, limit);
  }

  #lookAtLess(nowMs: number): void {
    const inUse = Math.min(this.#probe ?? this.#limit, this.#inFlightMax);
    const ratio = this.#isDeserted ? desertedProbeRatio : probeRatio;
    this.#probe = Math.max(this.#limits.min, this.#probeMin, ratio * inUse);
    this.#fromMs = nowMs;
  }

  #queue(knee: number): number {
    const most = busyQueue(knee, this.#demand?.loadRatio ?? 1);
    const least = Math.min(most, Math.max(queueMin, Math.sqrt(knee)));
    return most + this.#heldRatio * (least - most);
  }
}
