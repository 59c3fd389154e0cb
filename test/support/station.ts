import type { Random } from "../../src/core/base/clock.js";

/** A time in milliseconds, drawn anew at each call. */
export type DrawMs = () => number;

/**
 * What happens when, in simulated milliseconds from 0: callbacks run in the order of their times,
 * those of one time in the order in which they were asked for. Nothing of it takes real time.
 */
export class EventCalendar {
  readonly #heap: CalendarEvent[] = [];
  #nowMs = 0;
  #askedCount = 0;

  get nowMs(): number {
    return this.#nowMs;
  }

  /** Runs `callback` in `delayMs`, at once for what is past. @returns how to cancel it */
  after(delayMs: number, callback: () => void): () => void {
    const atMs = this.#nowMs + Math.max(0, delayMs);
    const event: CalendarEvent = { atMs, place: this.#askedCount, callback };
    this.#askedCount += 1;
    push(this.#heap, event);
    return () => {
      event.callback = undefined;
    };
  }

  /** Runs `callback` each `periodMs`, first in `periodMs`, for as long as the calendar runs. */
  every(periodMs: number, callback: () => void): void {
    const run = (): void => {
      callback();
      this.after(periodMs, run);
    };
    this.after(periodMs, run);
  }

  /** Lives until `untilMs`, all that is due then included. */
  runUntil(untilMs: number): void {
    for (let first = this.#heap[0]; first !== undefined; first = this.#heap[0]) {
      if (first.atMs > untilMs) break;
      popFirst(this.#heap);
      this.#nowMs = first.atMs;
      first.callback?.();
    }
    this.#nowMs = Math.max(this.#nowMs, untilMs);
  }
}

/** Told how a job fares. */
export interface StationCall {
  /** A server took it up; `job` may leave at once, as work that is too late to be worth it. */
  started?(job: StationJob): void;
  /** It has been served. */
  ended(): void;
}

/** A job at a station, from entering to its end. */
export interface StationJob {
  /**
   * Goes out of the queue, or off its server, which takes up the next one. Nothing for a job that
   * has ended.
   */
  leave(): void;
}

/**
 * A station of c equal servers behind one queue without end, first come first served. A new number
 * of servers holds for what comes next: nobody is thrown off a server.
 */
export class Station {
  readonly #calendar: EventCalendar;
  readonly #serviceMs: DrawMs;
  /** From `#queueStart` on; shortened now and then, so that leaving costs nothing. */
  #queue: PlacedJob[] = [];
  #queueStart = 0;
  #queueCount = 0;
  #busyCount = 0;
  #serverCount: number;
  /** Jobs on servers. */
  readonly #served = new Set<PlacedJob>();
  #pausedUntilMs = Number.NEGATIVE_INFINITY;
  #busyMs = 0;
  #busySinceMs = 0;

  constructor(calendar: EventCalendar, serverCount: number, serviceMs: DrawMs) {
    this.#calendar = calendar;
    this.#serverCount = serverCount;
    this.#serviceMs = serviceMs;
  }

  /** Jobs that wait for a server. */
  get queueCount(): number {
    return this.#queueCount;
  }

  get busyCount(): number {
    return this.#busyCount;
  }

  get serverCount(): number {
    return this.#serverCount;
  }

  set serverCount(count: number) {
    this.#serverCount = count;
    this.#takeUp();
  }

  /** All work stands still for `lengthMs`, as while garbage is collected; nothing begins. */
  pause(lengthMs: number): void {
    const { nowMs } = this.#calendar;
    const pausedMs = Math.max(0, this.#pausedUntilMs - nowMs);
    if (lengthMs <= pausedMs) return;
    this.#pausedUntilMs = nowMs + lengthMs;
    for (const job of this.#served) {
      job.cancelEnd?.();
      this.#endAt(job, job.endMs + lengthMs - pausedMs);
    }
    this.#calendar.after(lengthMs, () => this.#takeUp());
  }

  /** Time that servers have worked until now, added up. */
  get busyMs(): number {
    this.#account();
    return this.#busyMs;
  }

  /**
   * Takes a job; `call` may be told of its start at once.
   *
   * @param serviceMs how long it is served; drawn when it starts where undefined
   */
  enter(call: StationCall, serviceMs?: number): StationJob {
    const job: PlacedJob = {
      call,
      serviceMs,
      state: "queued",
      cancelEnd: undefined,
      endMs: Number.NaN,
      leave: () => this.#leave(job),
    };
    this.#queue.push(job);
    this.#queueCount += 1;
    this.#takeUp();
    return job;
  }

  #takeUp(): void {
    if (this.#calendar.nowMs < this.#pausedUntilMs) return;
    while (this.#busyCount < this.#serverCount && this.#queueCount > 0) {
      const job = this.#shift();
      this.#queueCount -= 1;
      this.#account();
      this.#busyCount += 1;
      job.state = "served";
      const serviceMs = job.serviceMs ?? this.#serviceMs();
      this.#served.add(job);
      this.#endAt(job, this.#calendar.nowMs + serviceMs);
      job.call.started?.(job);
    }
  }

  #endAt(job: PlacedJob, endMs: number): void {
    job.endMs = endMs;
    job.cancelEnd = this.#calendar.after(endMs - this.#calendar.nowMs, () => this.#end(job));
  }

  #shift(): PlacedJob {
    for (;;) {
      const job = this.#queue[this.#queueStart];
      if (job === undefined) throw new Error("the queue is shorter than its count");
      this.#queueStart += 1;
      if (this.#queueStart > 1_000 && this.#queueStart * 2 > this.#queue.length) {
        this.#queue = this.#queue.slice(this.#queueStart);
        this.#queueStart = 0;
      }
      if (job.state === "queued") return job;
    }
  }

  #end(job: PlacedJob): void {
    this.#account();
    this.#busyCount -= 1;
    job.state = "gone";
    this.#served.delete(job);
    job.call.ended();
    this.#takeUp();
  }

  #leave(job: PlacedJob): void {
    const { state } = job;
    if (state === "gone") return;
    job.state = "gone";
    if (state === "queued") {
      this.#queueCount -= 1;
      return;
    }
    this.#account();
    job.cancelEnd?.();
    this.#served.delete(job);
    this.#busyCount -= 1;
    this.#takeUp();
  }

  #account(): void {
    this.#busyMs += this.#busyCount * (this.#calendar.nowMs - this.#busySinceMs);
    this.#busySinceMs = this.#calendar.nowMs;
  }
}

/** Calls back at times that lie `gapMs` apart, until `untilMs`. */
export function startArrivals(
  calendar: EventCalendar,
  { gapMs, untilMs }: { readonly gapMs: DrawMs; readonly untilMs: number },
  arrive: () => void,
): void {
  const next = (): void => {
    const delayMs = gapMs();
    if (calendar.nowMs + delayMs > untilMs) return;
    calendar.after(delayMs, () => {
      arrive();
      next();
    });
  };
  next();
}

/** Always the same. */
export function fixedMs(ms: number): DrawMs {
  return () => ms;
}

/** Exponential: as gaps they make Poisson arrivals. */
export function exponentialMs(random: Random, meanMs: number): DrawMs {
  return () => -Math.log(1 - random.next()) * meanMs;
}

/**
 * Heavy-tailed: Pareto of that shape, cut off at `cutRatio` times its least value, moved so that
 * `meanMs` is its mean after the cut. Shape 1.5 has no variance without the cut.
 */
export function heavyTailedMs(
  random: Random,
  { meanMs, shape = 1.5, cutRatio = 1_000 }: HeavyTail,
): DrawMs {
  const cutTail = cutRatio ** -shape;
  // Mean of a Pareto from 1 to cutRatio: the integral of x f(x), over what the cut leaves.
  const unitMean = (shape / (shape - 1)) * ((1 - cutRatio ** (1 - shape)) / (1 - cutTail));
  const leastMs = meanMs / unitMean;
  return () => leastMs * (1 - random.next() * (1 - cutTail)) ** (-1 / shape);
}

/** What `heavyTailedMs` takes. */
export interface HeavyTail {
  readonly meanMs: number;
  /** More than 1; the smaller, the heavier. Default 1.5. */
  readonly shape?: number;
  /** The largest value over the least. Default 1,000. */
  readonly cutRatio?: number;
}

/**
 * Gaps of bursts: a random number of arrivals (geometric, `burstCount` in the mean) at a tenth of
 * the mean gap, then a pause that makes up for it, so that the mean gap is `meanMs`.
 */
export function burstyMs(
  random: Random,
  { meanMs, burstCount }: { readonly meanMs: number; readonly burstCount: number },
): DrawMs {
  const within = exponentialMs(random, meanMs / 10);
  const pause = exponentialMs(random, meanMs * (burstCount - (burstCount - 1) / 10));
  return () => (random.next() * burstCount < 1 ? pause() : within());
}

/** The value of which `ratio` of the values are not larger. */
export function quantile(values: readonly number[], ratio: number): number {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(ratio * sorted.length))] ?? Number.NaN;
}

interface CalendarEvent {
  readonly atMs: number;
  readonly place: number;
  callback: (() => void) | undefined;
}

interface PlacedJob extends StationJob {
  readonly call: StationCall;
  readonly serviceMs: number | undefined;
  state: "queued" | "served" | "gone";
  cancelEnd: (() => void) | undefined;
  /** When it will be served, from its start on. */
  endMs: number;
}

function isBefore(event: CalendarEvent, other: CalendarEvent): boolean {
  return event.atMs < other.atMs || (event.atMs === other.atMs && event.place < other.place);
}

/** Puts an event into a binary heap. */
function push(heap: CalendarEvent[], event: CalendarEvent): void {
  let place = heap.length;
  while (place > 0) {
    const parentPlace = (place - 1) >> 1;
    const parent = heap[parentPlace];
    if (parent === undefined || !isBefore(event, parent)) break;
    heap[place] = parent;
    place = parentPlace;
  }
  heap[place] = event;
}

/** Takes the first event out of a binary heap. */
function popFirst(heap: CalendarEvent[]): void {
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return;
  let place = 0;
  for (;;) {
    const leftPlace = 2 * place + 1;
    const left = heap[leftPlace];
    if (left === undefined) break;
    const right = heap[leftPlace + 1];
    const isRight = right !== undefined && isBefore(right, left);
    const child = isRight ? right : left;
    if (!isBefore(child, last)) break;
    heap[place] = child;
    place = isRight ? leftPlace + 1 : leftPlace;
  }
  heap[place] = last;
}
