/**
 * Calendar of events in simulated milliseconds from 0. Callbacks run in the order of their times,
 * and in the order of their registration if the times are equal. No real time passes.
 */
export class EventCalendar {
  readonly #heap: CalendarEvent[] = [];
  #nowMs = 0;
  #askedCount = 0;

  get nowMs(): number {
    return this.#nowMs;
  }

  /** Runs `callback` after `delayMs`, at once if negative. @returns a function that cancels it */
  after(delayMs: number, callback: () => void): () => void {
    const atMs = this.#nowMs + Math.max(0, delayMs);
    const event: CalendarEvent = { atMs, place: this.#askedCount, callback };
    this.#askedCount += 1;
    push(this.#heap, event);
    return () => {
      event.callback = undefined;
    };
  }

  /** Runs `callback` every `periodMs`, first after `periodMs`, for as long as the calendar runs. */
  every(periodMs: number, callback: () => void): void {
    const run = (): void => {
      callback();
      this.after(periodMs, run);
    };
    this.after(periodMs, run);
  }

  /** Runs the next event, if it is due by `untilMs`. @returns whether there was one */
  step(untilMs: number): boolean {
    const first = this.#heap[0];
    if (first === undefined || first.atMs > untilMs) return false;
    popFirst(this.#heap);
    this.#nowMs = first.atMs;
    first.callback?.();
    return true;
  }

  /** Runs all events until `untilMs`, including those at that time. */
  runUntil(untilMs: number): void {
    while (this.step(untilMs)) {
      // Each iteration runs one event.
    }
    this.#nowMs = Math.max(this.#nowMs, untilMs);
  }
}

/** Object that waits in a `DelayLine`. */
export interface Delayed {
  /** Called when the delay has elapsed. */
  elapsed(): void;
}

/**
 * Waits of equal length. They end in the order in which they start, so each needs an entry in a
 * queue and none in the calendar. Most (patience, which rarely ends) are cancelled early.
 */
export class DelayLine {
  readonly #calendar: EventCalendar;
  readonly #delayMs: number;
  #queue: { readonly dueMs: number; waiting: Delayed | undefined }[] = [];
  #start = 0;
  #isArmed = false;

  constructor(calendar: EventCalendar, delayMs: number) {
    this.#calendar = calendar;
    this.#delayMs = delayMs;
  }

  /** @returns the argument for `cancel` */
  add(waiting: Delayed): { waiting: Delayed | undefined } {
    const place = { dueMs: this.#calendar.nowMs + this.#delayMs, waiting };
    this.#queue.push(place);
    if (!this.#isArmed) this.#arm();
    return place;
  }

  #arm(): void {
    let first = this.#queue[this.#start];
    while (first !== undefined && first.waiting === undefined) {
      this.#start += 1;
      first = this.#queue[this.#start];
    }
    if (this.#start > 1_000 && this.#start * 2 > this.#queue.length) {
      this.#queue = this.#queue.slice(this.#start);
      this.#start = 0;
    }
    this.#isArmed = first !== undefined;
    if (first === undefined) return;
    this.#calendar.after(first.dueMs - this.#calendar.nowMs, () => this.#elapse());
  }

  #elapse(): void {
    const { nowMs } = this.#calendar;
    for (let first = this.#queue[this.#start]; first !== undefined; ) {
      if (first.waiting !== undefined && first.dueMs > nowMs) break;
      this.#start += 1;
      first.waiting?.elapsed();
      first = this.#queue[this.#start];
    }
    this.#arm();
  }
}

interface CalendarEvent {
  readonly atMs: number;
  readonly place: number;
  callback: (() => void) | undefined;
}

function isBefore(event: CalendarEvent, other: CalendarEvent): boolean {
  return event.atMs < other.atMs || (event.atMs === other.atMs && event.place < other.place);
}

/** Inserts an event into a binary heap. */
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

/** Removes the first event from a binary heap. */
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
