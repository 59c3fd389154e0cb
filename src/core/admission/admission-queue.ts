import type { Cancel, Clock } from "../base/clock.js";
import type { PermitPool } from "./permit-pool.js";
import { type Priority, priorities } from "./priority.js";
import type { QueuePlace, QueueRefusal } from "./request-queue.js";

/** A request that asks for a permit. */
export interface PermitSeeker<T> {
  readonly pool: PermitPool<T>;
  readonly priority: Priority;
  /** The peer whose part of the limit it takes; see `PermitPool.bears`. */
  readonly request: { readonly peer: string };
  /** Returns the remaining time of its caller; undefined if it is not known. */
  remainingMs(nowMs: number): number | undefined;
}

interface AdmissionQueueParts<T> {
  readonly clock: Clock;
  /** Pool that bounds all pools together; may be one of them. */
  readonly whole: PermitPool<T>;
  /** Admits a request that has left its queue. */
  readonly admit: (visit: T, nowMs: number) => void;
  /** Refuses requests that have left their queues. */
  readonly dismiss: (dismissed: readonly QueueRefusal<T>[], nowMs: number) => void;
}

/**
 * The queues of a service's pools. It admits the next requests as permits become free, one of each
 * pool in turn, and refuses those that have waited too long. Each callback may change the queues,
 * so no state of theirs is kept across one.
 */
export class AdmissionQueue<T extends PermitSeeker<T>> {
  readonly #parts: AdmissionQueueParts<T>;
  /** Pools with waiting requests. */
  readonly #waiting = new Set<PermitPool<T>>();
  #expiry: { readonly atMs: number; readonly cancel: Cancel } | undefined;

  constructor(parts: AdmissionQueueParts<T>) {
    this.#parts = parts;
  }

  /** Reports whether a request is admitted at once: a permit is free, and not for a waiting one. */
  hasRoom(visit: T, nowMs: number): boolean {
    const { pool, priority } = visit;
    if (!this.#bears(visit, nowMs) || !this.#isFree(pool, priority, nowMs)) return false;
    if (pool.waitingCount === 0) return true;
    const lowest = this.#lowestFree(pool, nowMs) ?? priority;
    return !pool.hasNext({ lowest, mayGo: (other) => this.#bears(other, nowMs) });
  }

  /** Reports whether there is a queue and the request's peer may wait; see `PermitPool.mayWait`. */
  mayWait({ pool, request: { peer } }: T, nowMs: number): boolean {
    const { whole } = this.#parts;
    return pool.hasQueue && pool.mayWait(peer, nowMs) && whole.mayWait(peer, nowMs);
  }

  /** Lets a request wait. @returns its place, undefined if there is none, and who is dismissed */
  enter(visit: T, nowMs: number): WaitingAnswer<T> {
    const { pool, priority } = visit;
    const remainingMs = visit.remainingMs(nowMs);
    const { place, dismissed } = pool.enter({ payload: visit, priority, remainingMs }, nowMs);
    if (place !== undefined) {
      this.#waiting.add(pool);
      this.#watchExpiry();
    }
    return { place, dismissed };
  }

  /** Admits waiting requests as long as permits are free. */
  serve(nowMs: number): void {
    while (this.#serveNext(nowMs)) {
      // Each round admits one request.
    }
  }

  #serveNext(nowMs: number): boolean {
    for (const pool of this.#waiting) {
      const isServed = this.#serveOne(pool, nowMs);
      if (isServed || pool.waitingCount === 0) this.#waiting.delete(pool);
      if (!isServed) continue;
      // Moves it to the end, so that another pool gets the next permit.
      if (pool.waitingCount > 0) this.#waiting.add(pool);
      return true;
    }
    return false;
  }

  #serveOne(pool: PermitPool<T>, nowMs: number): boolean {
    const lowest = pool.waitingCount === 0 ? undefined : this.#lowestFree(pool, nowMs);
    if (lowest === undefined) return false;
    const { place, dismissed } = pool.next(nowMs, {
      lowest,
      mayGo: (visit) => this.#bears(visit, nowMs),
    });
    if (place !== undefined) this.#parts.admit(place.payload, nowMs);
    this.#parts.dismiss(dismissed, nowMs);
    return place !== undefined;
  }

  /** Reports whether the limits allow another request of its peer; see `PermitPool.bears`. */
  #bears({ pool, request: { peer } }: T, nowMs: number): boolean {
    return pool.bears(peer, nowMs) && this.#parts.whole.bears(peer, nowMs);
  }

  #isFree(pool: PermitPool<T>, priority: Priority, nowMs: number): boolean {
    const { whole } = this.#parts;
    return pool.isFree(priority, nowMs) && (pool === whole || whole.isFree(priority, nowMs));
  }

  /** Returns the lowest class for which a permit is free, as it is for all classes above it. */
  #lowestFree(pool: PermitPool<T>, nowMs: number): Priority | undefined {
    let lowest: Priority | undefined;
    for (const priority of priorities) {
      if (!this.#isFree(pool, priority, nowMs)) break;
      lowest = priority;
    }
    return lowest;
  }

  /** Keeps one timer. It may fire too early, if the request that expires first was admitted. */
  #watchExpiry(): void {
    let atMs = Number.POSITIVE_INFINITY;
    for (const pool of this.#waiting) atMs = Math.min(atMs, pool.nextExpiryMs ?? atMs);
    if (atMs === Number.POSITIVE_INFINITY || (this.#expiry && this.#expiry.atMs <= atMs)) return;
    this.#expiry?.cancel();
    const { clock } = this.#parts;
    const cancel = clock.schedule(atMs - clock.monotonicMs(), () => this.#expire());
    this.#expiry = { atMs, cancel };
  }

  #expire(): void {
    const { clock, dismiss } = this.#parts;
    const nowMs = clock.monotonicMs();
    this.#expiry = undefined;
    for (const pool of this.#waiting) {
      dismiss(pool.expire(nowMs), nowMs);
      if (pool.waitingCount === 0) this.#waiting.delete(pool);
    }
    this.#watchExpiry();
  }
}

/** Result of asking for a place. */
interface WaitingAnswer<T> {
  readonly place: QueuePlace<T> | undefined;
  /** Requests that were displaced, or had waited too long. */
  readonly dismissed: readonly QueueRefusal<T>[];
}
