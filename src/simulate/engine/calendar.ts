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

  /** Runs what is due next, until `untilMs` at most. @returns whether there was something */
  step(untilMs: number): boolean {
    const first = this.#heap[0];
    if (first === undefined || first.atMs > untilMs) return false;
    popFirst(this.#heap);
    this.#nowMs = first.atMs;
    first.callback?.();
    return true;
  }

  /** Lives until `untilMs`, all that is due then included. */
  runUntil(untilMs: number): void {
    while (this.step(untilMs)) {
      // Each round runs one.
    }
    this.#nowMs = Math.max(this.#nowMs, untilMs);
  }
}

/** Something that waits in a `DelayLine`. */
export interface Delayed {
  /** Its time has come. */
  elapsed(): void;
}

/**
 * Waits of one length: they end in the order in which they begin, so each costs a place in a queue
 * and not in the calendar. Most of them (patience, which seldom ends) are cancelled before.
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

  /** @returns what `cancel` takes */
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
