import type { Cancel, Clock } from "../core/base/clock.js";
import { type Expiring, ExpiryHeap } from "../core/collections/expiry-heap.js";

/** One timer of the clock, set to the earliest of many times. */
export class Alarm {
  readonly #clock: Clock;
  readonly #ring: (nowMs: number) => void;
  #cancel: Cancel | undefined;
  #atMs = 0;

  /** @param ring called at the time that is set, or earlier; it sets the next time */
  constructor(clock: Clock, ring: (nowMs: number) => void) {
    this.#clock = clock;
    this.#ring = ring;
  }

  /**
   * Sets the time; undefined for none. A later time than before leaves the timer unchanged: it
   * rings early once, which is cheaper than a new timer for each call.
   */
  set(atMs: number | undefined, nowMs: number): void {
    if (this.#cancel !== undefined) {
      if (atMs !== undefined && atMs >= this.#atMs) return;
      this.#cancel();
      this.#cancel = undefined;
    }
    if (atMs === undefined) return;
    this.#atMs = atMs;
    this.#cancel = this.#clock.schedule(Math.max(0, atMs - nowMs), () => {
      this.#cancel = undefined;
      this.#ring(this.#clock.monotonicMs());
    });
  }
}

/** An item that waits for a time. */
export interface Timed extends Expiring {
  /** Called when its time has come. It no longer waits. */
  expired(nowMs: number): void;
}

/** The times that the calls of an admission wait for, on one timer of the clock. */
export class Timers {
  readonly #heap = new ExpiryHeap<Timed>();
  readonly #alarm: Alarm;

  constructor(clock: Clock) {
    this.#alarm = new Alarm(clock, (nowMs) => this.#ring(nowMs));
  }

  /** Adds an item that does not wait yet. */
  add(item: Timed, nowMs: number): void {
    this.#heap.push(item);
    this.#alarm.set(this.#heap.first?.expiresMs, nowMs);
  }

  /** Removes an item. Does nothing if it does not wait. */
  remove(item: Timed, nowMs: number): void {
    if (item.heapPlace === undefined) return;
    this.#heap.remove(item);
    this.#alarm.set(this.#heap.first?.expiresMs, nowMs);
  }

  #ring(nowMs: number): void {
    for (let item = this.#heap.first; item !== undefined; item = this.#heap.first) {
      if (item.expiresMs > nowMs) break;
      this.#heap.remove(item);
      item.expired(nowMs);
    }
    this.#alarm.set(this.#heap.first?.expiresMs, nowMs);
  }
}
