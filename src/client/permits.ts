import type { CodelSettings } from "../core/admission/codel.js";
import type { Priority } from "../core/admission/priority.js";
import {
  type QueuePlace,
  type QueueRefusal,
  type QueueSettings,
  RequestQueue,
  type Turn,
} from "../core/admission/request-queue.js";
import type { Clock } from "../core/base/clock.js";
import type { OutcomeKind } from "../core/calls/attempt-outcome.js";
import { AimdLimit } from "../core/concurrency/aimd-limit.js";
import type { ConcurrencyLimit, SampleOutcome } from "../core/concurrency/concurrency-limit.js";
import { FixedLimit } from "../core/concurrency/fixed-limit.js";
import { GradientLimit } from "../core/concurrency/gradient-limit.js";
import type { LimitBounds } from "../core/concurrency/limit-bounds.js";
import { VegasLimit } from "../core/concurrency/vegas-limit.js";
import { WindowLimit, windowMargin } from "../core/concurrency/window-limit.js";
import type { CallOptions, ConcurrencyOptions, QueueOptions } from "./admission.js";
import { type AdmissionCause, AdmissionError } from "./admission-error.js";
import { checkNumber, checkWord, count, timeMs, withDefaults } from "./options.js";
import { Alarm } from "./timers.js";

/** Reason why a call got no permit. */
export type PermitRefusal = Extract<
  AdmissionCause,
  "concurrency" | "queueFull" | "queueTimeout" | "deadline"
>;

/** A caller that waits for a permit. */
export interface PermitWaiter {
  admitted(permit: HeldPermit): void;
  refused(cause: PermitRefusal): void;
}

/** Parameters of a wait. */
interface WaitRequest {
  readonly priority: Priority;
  /** Maximum wait, in milliseconds from 0. Undefined for as long as the queue allows. */
  readonly remainingMs: number | undefined;
}

/** Options of a pool. Both parts are optional. */
export interface PermitPoolOptions {
  readonly concurrency?: ConcurrencyOptions | false;
  readonly queue?: QueueOptions;
}

/** A permit in use. It teaches the algorithm once and is released once. */
export class HeldPermit {
  readonly startMs: number;
  /** Number of permits in use, including this one, from 1. */
  readonly inFlight: number;
  /** Place in the queue at arrival, or `inFlight` if there is no queue; from 1. */
  readonly position: number;
  readonly #pool: CallPermits;
  #isTaught = false;
  #isGivenBack = false;

  constructor(pool: CallPermits, facts: Pick<HeldPermit, "startMs" | "inFlight" | "position">) {
    this.#pool = pool;
    this.startMs = facts.startMs;
    this.inFlight = facts.inFlight;
    this.position = facts.position;
  }

  /** Teaches the algorithm the outcome of the call. Only the first outcome counts. */
  teach(kind: OutcomeKind, nowMs: number): void {
    if (this.#isTaught) return;
    this.#isTaught = true;
    this.#pool.learn(this, kind, nowMs);
  }

  /** Releases the permit. Further calls do nothing. */
  giveBack(nowMs: number): void {
    if (this.#isGivenBack) return;
    this.#isGivenBack = true;
    this.#pool.free(nowMs);
  }
}

/**
 * Permits under one limit, with the algorithm that sets the limit, and the queue in front of it.
 *
 * A permit is taken only while fewer are in use than the limit of the class. A lower limit does not
 * take away permits that are in use.
 */
export class CallPermits {
  readonly #clock: Clock;
  readonly #law: ConcurrencyLimit | undefined;
  readonly #countsFailures: boolean = false;
  /** Number of permits if the algorithm limits the queue. */
  readonly #fixedCount: number | undefined;
  /** Maximum number of permits for all classes, whatever the algorithm says. */
  readonly #limitMax: number = Number.POSITIVE_INFINITY;
  readonly #knowsClasses: boolean;
  readonly #queue: RequestQueue<PermitWaiter> | undefined;
  readonly #alarm: Alarm;
  #inUseCount = 0;
  #isLettingIn = false;

  /** @throws RangeError that names an option which is out of bounds */
  constructor({ concurrency = false, queue }: PermitPoolOptions, clock: Clock) {
    this.#clock = clock;
    this.#alarm = new Alarm(clock, (nowMs) => {
      this.#dismiss(this.#queue?.expire(nowMs) ?? []);
      this.#setAlarm(nowMs);
    });
    this.#queue = queue && new RequestQueue(queueSettings(queue));
    this.#knowsClasses = queue === undefined || (queue.order ?? "priority") === "priority";
    if (concurrency === false) return;
    const { law, countsFailures, boundsQueue, limitMax } = lawOf(concurrency);
    this.#law = law;
    this.#limitMax = limitMax;
    this.#countsFailures = countsFailures;
    if (!boundsQueue || queue === undefined) return;
    checkNumber("concurrency.permits", concurrency.permits, count(1));
    this.#fixedCount = concurrency.permits;
  }

  /** The algorithm's limit: permits, or places if it limits the queue. Infinity without one. */
  get limit(): number {
    return this.#law?.limit ?? Number.POSITIVE_INFINITY;
  }

  get inUseCount(): number {
    return this.#inUseCount;
  }

  get waitingCount(): number {
    return this.#queue?.waitingCount ?? 0;
  }

  /** Takes a permit if one is free for the class and no waiting call may take it. */
  tryTake(priority: Priority, nowMs: number): HeldPermit | undefined {
    if (!this.#isFree(priority)) return undefined;
    if (this.waitingCount > 0 && this.#queue?.hasNext(this.#turn()) === true) return undefined;
    return this.#take(this.#queue === undefined ? this.#inUseCount + 1 : 1, nowMs);
  }

  /** Waits for a permit. @returns the place in the queue, or the cause of a refusal */
  wait(waiter: PermitWaiter, request: WaitRequest, nowMs: number): PermitPlace | PermitRefusal {
    const queue = this.#queue;
    if (queue === undefined) return "concurrency";
    const isBeyondWindow = this.#fixedCount !== undefined && queue.waitingCount >= this.limit;
    if (isBeyondWindow) return "queueFull";
    const { place, dismissed } = queue.enter({ payload: waiter, ...request }, nowMs);
    this.#dismiss(dismissed);
    this.#setAlarm(nowMs);
    return place ?? "queueFull";
  }

  /** Leaves the queue without a permit. */
  leave(place: PermitPlace, nowMs: number): void {
    this.#queue?.leave(place);
    this.#setAlarm(nowMs);
  }

  /** Only permits call this. */
  learn({ startMs, inFlight, position }: HeldPermit, kind: OutcomeKind, nowMs: number): void {
    if (this.#law === undefined) return;
    const outcome = this.#sampleOutcome(kind);
    this.#law.record({ startMs, endMs: nowMs, inFlight, position, outcome });
    this.#letIn(nowMs);
  }

  /** Only permits call this. */
  free(nowMs: number): void {
    this.#inUseCount -= 1;
    this.#letIn(nowMs);
  }

  /**
   * Reports whether a permit is free for a class. Critical calls may exceed a learned limit by what
   * arrives at once by chance, and a limit probe does not restrict them. But they may not exceed
   * the maximum of the options, or the limit if the queue does not use classes.
   */
  #isFree(priority: Priority): boolean {
    if (this.#fixedCount !== undefined) return this.#inUseCount < this.#fixedCount;
    const { limit } = this;
    if (this.#inUseCount < limit) return true;
    if (priority !== "critical" || !this.#knowsClasses) return false;
    return this.#inUseCount < Math.min(this.#law?.criticalLimit ?? limit, this.#limitMax);
  }

  /** Returns whose turn it may be now: that of any class, or of critical calls only. */
  #turn(): Turn<PermitWaiter> {
    return this.#isFree("low") ? anybodysTurn : criticalTurn;
  }

  #take(position: number, nowMs: number): HeldPermit {
    this.#inUseCount += 1;
    return new HeldPermit(this, { startMs: nowMs, inFlight: this.#inUseCount, position });
  }

  /** An admitted call may end at once and free a permit, which this loop then assigns, too. */
  #letIn(nowMs: number): void {
    const queue = this.#queue;
    if (queue === undefined || queue.waitingCount === 0 || this.#isLettingIn) return;
    this.#isLettingIn = true;
    const margin = this.#fixedCount === undefined ? Number.POSITIVE_INFINITY : windowMargin;
    while (this.#isFree("critical") && queue.hasNext(this.#turn())) {
      const { place, dismissed } = queue.next(nowMs, this.limit + margin, this.#turn());
      const permit = place && this.#take(place.position, nowMs);
      this.#dismiss(dismissed);
      if (permit !== undefined) place?.payload.admitted(permit);
    }
    this.#isLettingIn = false;
    this.#setAlarm(this.#clock.monotonicMs());
  }

  #dismiss(refusals: readonly QueueRefusal<PermitWaiter>[]): void {
    for (const { place, cause } of refusals) place.payload.refused(cause);
  }

  #setAlarm(nowMs: number): void {
    this.#alarm.set(this.#queue?.nextExpiryMs, nowMs);
  }

  #sampleOutcome(kind: OutcomeKind): SampleOutcome {
    switch (kind) {
      case "served":
        return "success";
      case "failed":
        return this.#countsFailures ? "dropped" : "ignore";
      case "overloaded":
        return "dropped";
      case "cancelled":
        return "ignore";
    }
  }
}

/** Waits for a permit; see `Limiter.acquire`. */
export async function acquirePermit(
  permits: CallPermits,
  given: {
    readonly name: string;
    readonly clock: Clock;
    readonly request: Pick<CallOptions<unknown>, "priority" | "timeoutMs" | "signal">;
  },
): Promise<HeldPermit> {
  const { name, clock, request } = given;
  const { priority = "normal", timeoutMs, signal } = request;
  if (timeoutMs !== undefined) checkNumber("timeoutMs", timeoutMs, timeMs(0));
  signal?.throwIfAborted();
  const nowMs = clock.monotonicMs();
  const held = permits.tryTake(priority, nowMs);
  if (held !== undefined) return held;
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      if (typeof place !== "string") permits.leave(place, clock.monotonicMs());
      reject(signal?.reason);
    };
    const refused = (cause: PermitRefusal): void => {
      signal?.removeEventListener("abort", onAbort);
      reject(new AdmissionError(name, cause));
    };
    const admitted = (permit: HeldPermit): void => {
      signal?.removeEventListener("abort", onAbort);
      resolve(permit);
    };
    const place = permits.wait({ admitted, refused }, { priority, remainingMs: timeoutMs }, nowMs);
    if (typeof place === "string") refused(place);
    else signal?.addEventListener("abort", onAbort, { once: true });
  });
}

/** A place in the queue. */
export type PermitPlace = QueuePlace<PermitWaiter>;

/** An algorithm, with its traits from `core/concurrency/concurrency-laws.ts`. */
interface Law {
  readonly law: ConcurrencyLimit;
  /** Whether failures count as drops. */
  readonly countsFailures: boolean;
  /** Whether its limit is the number of places in the queue, if there is one. */
  readonly boundsQueue: boolean;
}

const anybodysTurn: Turn<unknown> = { lowest: "low", mayGo: () => true };
const criticalTurn: Turn<unknown> = { lowest: "critical", mayGo: () => true };

const lawNames = ["gradient", "vegas", "aimd", "window", "fixed"] as const;

function lawOf(options: ConcurrencyOptions): Law & { readonly limitMax: number } {
  const { law, initial, min, max } = withDefaults<Required<Omit<ConcurrencyOptions, "permits">>>(
    options,
    {
      name: "concurrency",
      defaults: { law: "gradient", initial: 20, min: 1, max: 1_000 },
      bounds: { initial: count(1), min: count(1), max: count(1) },
    },
  );
  checkWord("concurrency.law", law, lawNames);
  if (min > max) throw new RangeError("concurrency.min must be at most concurrency.max");
  return { ...createLaw(law, { initial, min, max }), limitMax: max };
}

/** Uses no table of all algorithms, so that the package contains only those that it needs. */
function createLaw(name: (typeof lawNames)[number], limits: LimitBounds): Law {
  const statistic = { kind: "mean" } as const;
  const others = { countsFailures: false, boundsQueue: false };
  switch (name) {
    case "gradient": {
      const settings = { rttTolerance: 1.5, smoothingRatio: 0.2, statistic } as const;
      const its = { law: name, baseline: "minRtt", ...settings } as const;
      return { law: new GradientLimit(its, limits), ...others };
    }
    case "vegas":
      return {
        law: new VegasLimit({ law: name, smoothingRatio: 1, statistic }, limits),
        ...others,
      };
    case "aimd": {
      const settings = { law: name, increase: 1, decreaseRatio: 0.5 };
      return { law: new AimdLimit(settings, limits), ...others, countsFailures: true };
    }
    case "window":
      return { law: new WindowLimit(limits), countsFailures: true, boundsQueue: true };
    case "fixed":
      return { law: new FixedLimit({ ...limits, max: limits.initial }), ...others };
  }
}

const queueOrders = ["priority", "fifo", "newestFirstUnderOverload"] as const;

function queueSettings(options: QueueOptions): QueueSettings {
  const { sizeMax, waitMsMax, order, codel } = withDefaults<Required<QueueOptions>>(options, {
    name: "queue",
    defaults: {
      sizeMax: 100,
      waitMsMax: 300,
      order: "priority",
      codel: { targetMs: 20, intervalMs: 100 },
    },
    bounds: { sizeMax: count(0), waitMsMax: timeMs(0) },
  });
  checkWord("queue.order", order, queueOrders);
  return { sizeMax, waitMsMax, order, codel: codel === false ? undefined : checkedCodel(codel) };
}

function checkedCodel(codel: CodelSettings): CodelSettings {
  checkNumber("queue.codel.targetMs", codel.targetMs, timeMs(0));
  checkNumber("queue.codel.intervalMs", codel.intervalMs, timeMs(1));
  return codel;
}
