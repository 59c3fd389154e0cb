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
 * The shortest time between two steps, the fewest round trips, and how many of them one after the
 * other, up to a time: the first to end are the short ones, and tell of those alone.
 */
const stepMsMin = 500;
const stepCountMin = 10;
const stepRttCount = 2;
const stepRttsMsMax = 10_000;

/**
 * The shortest time before anything was found, and the limit from which it applies: a process that
 * begins refuses what its service has done all along, for as long as the limit takes to grow to it.
 */
const startStepMsMin = 100;
const startMin = 50;

/** Requests in flight count as load as long as so many times more have not ended. */
const startEndedRatio = 10;

/** How far above the knee the limit is, before its queue. */
const marginRatio = 1.1;

/** What a step of looking at less leaves of what is in use, and all of them of a known knee. */
const probeRatio = 0.7;
const probeKneeRatio = 0.5;

/** Steps of it that show whether latency falls, and how many times as long it rests after it. */
const probeStepsMin = 2;
const probeRestRatio = 3;

/**
 * A service is deserted where so large a part of its callers leave unanswered, or a smaller one
 * after so many times as long as its work takes: many have reasons of their own to leave at once.
 */
const desertedRatio = 0.9;
const desertedLateRatio = 0.5;
const lateServiceCount = 4;

/**
 * From this part on, callers that leave as late show that a queue is longer than their patience;
 * and for how long that counts, in milliseconds.
 */
const impatientRatio = 0.1;
const impatientMs = 30_000;

/** What a step of looking at less leaves there, since there is little to lose. */
const desertedProbeRatio = 0.4;

/**
 * Steps with the fewest permits in which callers leave as before, until that is taken for their
 * way; and how often that makes the rest after it twice as long.
 */
const lowestStepsMin = 3;
const vainCountMax = 5;

/** The least plausible knee over the likeliest one from which that is known well enough. */
const knownRatio = 0.65;

/** From so many times the knee that looking at less has shown it looks again. */
const provenRatio = 1.5;

/** Part of that knee that still counts after each step, so that it is shown again after minutes. */
const provenKept = 0.995;

/** The weight of a request in the share of those that ended while others waited for a permit. */
const heldWeight = 0.01;

/** Growth where no queue is seen: below ten permits and at the start, and from there on. */
const smallMax = 10;
const fastGrowthRatio = 2;
const growthRatio = 1.5;

/** Below so many permits it grows as long as the knee may be above all that was seen. */
const fewestMax = 4;

/** From so many requests that ask over those that end on, the limit is far too low, and doubles. */
const starvedLoadRatio = 10;

/** From so many on, a step with the fewest permits waits for two samples of each. */
const fewestLoadRatio = 40;

/** The limit counts as reached from this part of it on. */
const reachedRatio = 0.8;

/** Lower classes are refused from less on, and while they are, no more may be in flight. */
const classRatio = 0.74;

/** Where it is not, it falls to so many times what is in use, but to no less than this. */
const spareRatio = 4;
const spareMin = 50;

/** A load from which requests are refused, so that it is worth while to look at less. */
const busyLoadRatio = 1.1;

/** The share of critical requests that may find no room although their demand is borne. */
const unluckyRatio = 0.0003;

/** From this demand on critical requests fill the service alone, and no queue is long enough. */
const criticalDemandMax = 0.95;

/** From this one on most of a queue's places would be taken by who could be refused as well. */
const hopelessDemandMin = 1.2;

/**
 * A limit by the knee: the least number in flight that keeps all workers busy, which shows in the
 * latency of single requests by how many were in flight when they began (`LatencyByLevel`).
 *
 * limit = 1.1 * knee + queue, which keeps the workers busy at the load (`busyQueue`).
 *
 * Example: 10 workers at three times their load: 11 + 2 = 13 permits, 65 ms where one request takes
 * 50 ms.
 *
 * Where requests wait for a permit anyway, and take one as soon as it is free, a queue at the
 * service only adds to that: then it is no longer than the root of the knee, which is what may end
 * at once by chance.
 *
 * - The limit is reached, and no queue is seen at any level, or the limit is below half of the
 *   likeliest knee, or below four while the knee may be above all that was seen: it grows by a
 *   half. It doubles below 10, and where ten times as many ask as end. From 50 on it doubles, too,
 *   in steps of 100 ms, until it has found something or looked at less. Below four, where forty
 *   times as many ask, a step takes two samples of each permit: ten of one permit take 20 s where
 *   a request takes two. Where it is not reached, it falls to four times what is in use, but to no
 *   less than 50.
 * - Nothing is known of few in flight, as when the limit was too high from the start, or for half a
 *   minute: it looks at less, by 0.7 a step, until the knee shows. Nobody is served less as long as
 *   there is a queue at the service, and below the knee a few round trips are enough. It ends where
 *   fewer requests end, and at half of a knee that was known.
 * - Fewer requests end since the limit is lower, while more ask: it returns (`ThroughputFloor`).
 *
 * A request whose caller leaves unanswered, at its deadline or without one, would have taken
 * longer: its time counts, and no end, as times that are cut off do where they are exponential.
 * Where nearly all that stated no deadline leave, or most after four times as long as work takes,
 * levels tell nothing any more, since a service works on for those that have left. Then it looks at
 * less, down to `min`, until callers are served, and begins anew from there. Who leaves with one in
 * flight as with many has reasons of its own.
 *
 * Critical requests may exceed the limit by what chance brings at once, so that three in ten
 * thousand of them find no room: by 3 * sqrt(limit), or by the queue that is as unlikely at their
 * own demand, if that is longer. They may not if they fill the service alone. Only 3 * sqrt(limit)
 * is allowed for half a minute after more than a tenth of the callers left late: the longer queue
 * exceeds their patience, and a service works on for those who have left.
 *
 * Fits when the same requests take the same time at any number in flight below the knee, each of
 * them is seen by this process, and capacity is not known or changes. Does not fit when latency
 * comes from a dependency that less concurrency does not relieve, or when what Envoys tell is all
 * that is known: that has no levels.
 *
 * Source: TCP BBR (both the throughput and the time without a queue, each where it shows); M/M/1
 * for the queue of critical requests.
 */
export class KneeLimit implements ConcurrencyLimit {
  readonly #limits: LimitBounds;
  readonly #levels = new LatencyByLevel();
  #limit: number;
  /** Permits while it looks at less. */
  #probe: number | undefined;
  #probeCount = 0;
  #probeSteps = 0;
  #probeMs = 0;
  #probeMin = 0;
  /** Whether that is since callers leave, and how often in a row it was in vain. */
  #isDeserted = false;
  #lowestSteps = 0;
  #vainCount = 0;
  /** Whether callers left lately that had waited for long, and until when that counts. */
  #isImpatient = false;
  #impatientUntilMs = Number.NEGATIVE_INFINITY;
  #noProbeUntilMs = Number.NEGATIVE_INFINITY;
  #fit: KneeFit | undefined;
  /** Whether a knee was ever seen. */
  #isFound = false;
  /** The knee after looking at less. */
  #provenKnee = 0;
  #demand: Demand | undefined;
  /** Round trips since the last step that began from then on, and the first and most of them. */
  #fromMs = Number.NEGATIVE_INFINITY;
  #count = 0;
  /** Samples so far. */
  #endedCount = 0;
  #leftCount = 0;
  #firstMs = 0;
  #inFlightMax = 0;
  #rttSumMs = 0;
  #throughputFloor = new ThroughputFloor();
  /** The share of requests that ended while others waited for a permit. */
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
    // What began before met another limit.
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

  /** Windows of a fleet have no levels. */
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

  /** Whether requests are refused at a knee so much greater than any that was looked for. */
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

  /** Whether a limit that is not small is all in use, and nothing was found or looked for yet. */
  get #isGrowingFast(): boolean {
    const isNew = !this.#isFound && this.#probeCount === 0;
    return isNew && this.#limit >= startMin && this.#isReached;
  }

  /** Samples of a step: fewer where permits are far too few, and nothing else was learned yet. */
  get #stepCount(): number {
    const isStarved = this.#limit < fewestMax && this.#loadRatio > fewestLoadRatio;
    const hasLearned = this.#isFound || this.#probe !== undefined || this.#leftCount > 0;
    return isStarved && !hasLearned ? stepRttCount * this.limit : stepCountMin;
  }

  get #isReached(): boolean {
    return this.#inFlightMax >= reachedRatio * this.steadyLimit;
  }

  /** Whether more ask than are served. */
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

  /** Whether requests took much longer than work does, or their callers waited for so long. */
  #isLate(): boolean {
    const { serviceMs = Number.POSITIVE_INFINITY } = this.#fit ?? {};
    return this.#rttSumMs > lateServiceCount * serviceMs * this.#count;
  }

  /** Callers leave, of whom nothing is learned but that: looks at less until some are served. */
  #lookWhoIsServed(nowMs: number): void {
    if (this.#probe === undefined && nowMs < this.#noProbeUntilMs) return;
    this.#isDeserted = true;
    if (this.#probe === undefined) {
      this.#startProbe(nowMs);
    } else if (this.limit > this.#limits.min) {
      this.#lookAtLess(nowMs);
    } else if (this.#leftCount === this.#count && this.#fit !== undefined) {
      // Nobody is served who was before: it is down, and there is nothing to lose.
    } else if (this.#lowestSteps < lowestStepsMin) {
      this.#lowestSteps += 1;
    } else {
      this.#vainCount = Math.min(vainCountMax, this.#vainCount + 1);
      this.#endProbe(nowMs);
      this.#isDeserted = false;
    }
  }

  /** Callers are served again: what was known is of a service that is not so any more. */
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

  /** Grows, or looks at less. */
  #find(fit: KneeFit, nowMs: number): void {
    const inFlightMax = this.#inFlightMax;
    const isReached = this.#isReached;
    const isBusy = isReached || this.#isBusy;
    // So far below the likeliest knee, or with so few, nothing is learned from even less.
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

  /** A step of looking at less is over. */
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
