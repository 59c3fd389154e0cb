import type { CodelSettings } from "../core/admission/codel.js";
import type { Priority } from "../core/admission/priority.js";
import {
  type QueuePlace,
  type QueueRefusal,
  type QueueSettings,
  RequestQueue,
} from "../core/admission/request-queue.js";
import type { Clock } from "../core/base/clock.js";
import {
  type ConcurrencySettings,
  concurrencyLaws,
  createConcurrencyLimit,
} from "../core/concurrency/concurrency-laws.js";
import type { ConcurrencyLimit, SampleOutcome } from "../core/concurrency/concurrency-limit.js";
import type { LimitBounds } from "../core/concurrency/limit-bounds.js";
import { windowMargin } from "../core/concurrency/window-limit.js";
import type { ConcurrencyOptions, QueueOptions } from "./admission.js";
import { type AdmissionCause, AdmissionError } from "./admission-error.js";
import { checkNumber, checkWord, count, timeMs, withDefaults } from "./options.js";
import type { OutcomeKind } from "./outcome.js";
import { callClock } from "./system.js";
import { Alarm } from "./timers.js";

/** Why somebody got no permit. */
export type PermitRefusal = Extract<
  AdmissionCause,
  "concurrency" | "queueFull" | "queueTimeout" | "deadline"
>;

/** Who waits for a permit. */
export interface PermitWaiter {
  admitted(permit: HeldPermit): void;
  refused(cause: PermitRefusal): void;
}

/** What somebody who waits asks for. */
interface WaitRequest {
  readonly priority: Priority;
  /** How long it would wait, in milliseconds from 0; undefined: as long as the queue allows. */
  readonly remainingMs: number | undefined;
}

/** What a pool is made of; both parts may be missing. */
export interface PermitPoolOptions {
  readonly concurrency?: ConcurrencyOptions | false;
  readonly queue?: QueueOptions;
}

/** A permit in use. It teaches the law once, and is given back once. */
export class HeldPermit {
  readonly startMs: number;
  /** Permits in use with it, from 1. */
  readonly inFlight: number;
  /** Its place in the queue when it came, or `inFlight` where there is no queue: from 1. */
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

  /** Teaches the law what its call came to. Only the first outcome counts. */
  teach(kind: OutcomeKind, nowMs: number): void {
    if (this.#isTaught) return;
    this.#isTaught = true;
    this.#pool.learn(this, kind, nowMs);
  }

  /** Gives it back; once more does nothing. */
  giveBack(nowMs: number): void {
    if (this.#isGivenBack) return;
    this.#isGivenBack = true;
    this.#pool.free(nowMs);
  }
}

/**
 * Permits under one limit, the law that sets it, and the queue in front of it.
 *
 * A permit is only taken while fewer are in use than the limit says, whatever the priority: the
 * queue decides who is next. A limit that falls takes no permit away.
 */
export class CallPermits {
  readonly #clock: Clock;
  readonly #law: ConcurrencyLimit | undefined;
  readonly #countsFailures: boolean;
  /** Permits where the law bounds the queue. */
  readonly #fixedCount: number | undefined;
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
    const settings = concurrency === false ? undefined : concurrencySettings(concurrency);
    this.#law = settings && createConcurrencyLimit(settings);
    this.#countsFailures = settings !== undefined && concurrencyLaws[settings.law].countsFailures;
    const boundsQueue = settings !== undefined && concurrencyLaws[settings.law].bounds === "queue";
    if (concurrency === false || !boundsQueue || queue === undefined) return;
    checkNumber("concurrency.permits", concurrency.permits, count(1));
    this.#fixedCount = concurrency.permits;
  }

  /** What the law says: permits, or places where it bounds the queue. Infinity without a law. */
  get limit(): number {
    return this.#law?.limit ?? Number.POSITIVE_INFINITY;
  }

  get inUseCount(): number {
    return this.#inUseCount;
  }

  get waitingCount(): number {
    return this.#queue?.waitingCount ?? 0;
  }

  /** Takes a permit if one is free and nobody waits for it. */
  tryTake(nowMs: number): HeldPermit | undefined {
    if (!this.#isFree() || this.waitingCount > 0) return undefined;
    return this.#take(this.#queue === undefined ? this.#inUseCount + 1 : 1, nowMs);
  }

  /** Waits for a permit. @returns the place in the queue, or why there is none */
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

  #isFree(): boolean {
    return this.#inUseCount < (this.#fixedCount ?? this.limit);
  }

  #take(position: number, nowMs: number): HeldPermit {
    this.#inUseCount += 1;
    return new HeldPermit(this, { startMs: nowMs, inFlight: this.#inUseCount, position });
  }

  /** Who is let in may end at once, and free another permit: that one is this loop's, too. */
  #letIn(nowMs: number): void {
    const queue = this.#queue;
    if (queue === undefined || queue.waitingCount === 0 || this.#isLettingIn) return;
    this.#isLettingIn = true;
    const margin = this.#fixedCount === undefined ? Number.POSITIVE_INFINITY : windowMargin;
    while (this.#isFree() && queue.waitingCount > 0) {
      const { place, dismissed } = queue.next(nowMs, this.limit + margin);
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

/** A place in the queue. */
export type PermitPlace = QueuePlace<PermitWaiter>;

const lawNames = ["gradient", "vegas", "aimd", "window", "fixed"] as const;

function concurrencySettings(options: ConcurrencyOptions): ConcurrencySettings {
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
  return lawSettings(law, { initial, min, max });
}

function lawSettings(
  law: NonNullable<ConcurrencyOptions["law"]>,
  limits: LimitBounds,
): ConcurrencySettings {
  const statistic = { kind: "mean" } as const;
  switch (law) {
    case "gradient":
      return { law, limits, rttTolerance: 1.5, smoothingRatio: 0.2, baseline: "minRtt", statistic };
    case "vegas":
      return { law, limits, smoothingRatio: 1, statistic };
    case "aimd":
      return { law, limits, increase: 1, decreaseRatio: 0.5 };
    case "window":
      return { law, limits };
    case "fixed":
      return { law, limits: { ...limits, max: limits.initial } };
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

/** Options of a limiter. */
export interface LimiterOptions extends ConcurrencyOptions {
  /** Names it in errors. Default `limiter` */
  readonly name?: string;
  /** Who waits. Default: nobody does */
  readonly queue?: QueueOptions;
  /** For tests. Default: the process's own */
  readonly clock?: Clock;
}

/** What somebody asks a limiter for. */
export interface AcquireOptions {
  /** Default `normal` */
  readonly priority?: Priority;
  /** The longest wait, in milliseconds, beside the queue's own. */
  readonly timeoutMs?: number;
  /** Leaves the queue. */
  readonly signal?: AbortSignal;
}

/** A permit of a limiter. */
export interface Permit {
  /**
   * Gives it back, and teaches the law what the work came to; once more does nothing.
   *
   * @param kind default `served`
   */
  release(kind?: OutcomeKind): void;
}

/** State of a limiter. */
export interface LimiterSnapshot {
  /** Permits that may be in use; of `window` with a queue the places of it. */
  readonly limit: number;
  readonly inFlight: number;
  readonly waiting: number;
}

/** A limit of what is in flight at once, that is learned from how the work goes. */
export interface Limiter {
  /** A permit, if one is free now and nobody waits for it. */
  tryAcquire(): Permit | undefined;
  /**
   * A permit, when one is free.
   *
   * @throws AdmissionError when there is none in time; the signal's reason when that aborts
   */
  acquire(options?: AcquireOptions): Promise<Permit>;
  snapshot(): LimiterSnapshot;
}

/**
 * A concurrency limit with a queue, by itself.
 *
 * @throws RangeError that names an option which is out of bounds
 */
export function createLimiter(options: LimiterOptions = {}): Limiter {
  const { name = "limiter", clock = callClock, queue } = options;
  const permits = new CallPermits({ concurrency: options, ...(queue && { queue }) }, clock);
  const releasable = (held: HeldPermit): Permit => ({
    release: (kind = "served") => {
      const nowMs = clock.monotonicMs();
      held.teach(kind, nowMs);
      held.giveBack(nowMs);
    },
  });
  return {
    tryAcquire: () => {
      const held = permits.tryTake(clock.monotonicMs());
      return held && releasable(held);
    },
    acquire: async (request = {}) =>
      releasable(await acquirePermit(permits, { name, clock, request })),
    snapshot: () => ({
      limit: permits.limit,
      inFlight: permits.inUseCount,
      waiting: permits.waitingCount,
    }),
  };
}

/** A permit, when one is free; see `Limiter.acquire`. */
export async function acquirePermit(
  permits: CallPermits,
  given: { readonly name: string; readonly clock: Clock; readonly request: AcquireOptions },
): Promise<HeldPermit> {
  const { name, clock, request } = given;
  const { priority = "normal", timeoutMs, signal } = request;
  if (timeoutMs !== undefined) checkNumber("timeoutMs", timeoutMs, timeMs(0));
  signal?.throwIfAborted();
  const nowMs = clock.monotonicMs();
  const held = permits.tryTake(nowMs);
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
