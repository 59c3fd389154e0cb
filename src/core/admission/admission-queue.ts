import type { Cancel, Clock } from "../base/clock.js";
import type { PermitPool } from "./permit-pool.js";
import { type Priority, priorities } from "./priority.js";
import type { QueuePlace, QueueRefusal } from "./request-queue.js";

/** A request that asks for a permit. */
export interface PermitSeeker<T> {
  readonly pool: PermitPool<T>;
  readonly priority: Priority;
  /** Whose part of the limit it takes; see `PermitPool.bears`. */
  readonly request: { readonly peer: string };
  /** What is left of its caller's time; undefined where nobody said. */
  remainingMs(nowMs: number): number | undefined;
}

interface AdmissionQueueParts<T> {
  readonly clock: Clock;
  /** A bound on all pools together; may be one of them. */
  readonly whole: PermitPool<T>;
  /** Lets a visit in that has left its queue. */
  readonly admit: (visit: T, nowMs: number) => void;
  /** Refuses visits that have left their queues. */
  readonly dismiss: (dismissed: readonly QueueRefusal<T>[], nowMs: number) => void;
}

/**
 * The queues of a service's pools: lets in who is next as permits come free, one of each pool in
 * turn, and refuses who has waited for too long. Whoever is told something may change the queues
 * meanwhile, so nothing is remembered over a call.
 */
export class AdmissionQueue<T extends PermitSeeker<T>> {
  readonly #parts: AdmissionQueueParts<T>;
  /** Pools in which somebody waits. */
  readonly #waiting = new Set<PermitPool<T>>();
  #expiry: { readonly atMs: number; readonly cancel: Cancel } | undefined;

  constructor(parts: AdmissionQueueParts<T>) {
    this.#parts = parts;
  }

  /** Whether a visit may go in at once: a permit is free for it, and for nobody who waits. */
  hasRoom(visit: T, nowMs: number): boolean {
    const { pool, priority } = visit;
    if (!this.#bears(visit, nowMs) || !this.#isFree(pool, priority, nowMs)) return false;
    if (pool.waitingCount === 0) return true;
    const lowest = this.#lowestFree(pool, nowMs) ?? priority;
    return !pool.hasNext({ lowest, mayGo: (other) => this.#bears(other, nowMs) });
  }

  /** Whether a visit may wait, as far as its peer goes; see `PermitPool.mayWait`. */
  mayWait({ pool, request: { peer } }: T, nowMs: number): boolean {
    const { whole } = this.#parts;
    return pool.hasQueue && pool.mayWait(peer, nowMs) && whole.mayWait(peer, nowMs);
  }

  /** Lets a visit wait. @returns its place, or undefined where there is none */
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

  /** Lets in who waits, as long as permits are free. */
  serve(nowMs: number): void {
    while (this.#serveNext(nowMs)) {
      // Each round lets one in.
    }
  }

  #serveNext(nowMs: number): boolean {
    for (const pool of this.#waiting) {
      const isServed = this.#serveOne(pool, nowMs);
      if (isServed || pool.waitingCount === 0) this.#waiting.delete(pool);
      if (!isServed) continue;
      // To the end, so that the next permit is another pool's.
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

  /** Whether limits bear another request of its peer; see `PermitPool.bears`. */
  #bears({ pool, request: { peer } }: T, nowMs: number): boolean {
    return pool.bears(peer, nowMs) && this.#parts.whole.bears(peer, nowMs);
  }

  #isFree(pool: PermitPool<T>, priority: Priority, nowMs: number): boolean {
    const { whole } = this.#parts;
    return pool.isFree(priority, nowMs) && (pool === whole || whole.isFree(priority, nowMs));
  }

  /** The lowest class that a permit is free for, as it is then for all above it. */
  #lowestFree(pool: PermitPool<T>, nowMs: number): Priority | undefined {
    let lowest: Priority | undefined;
    for (const priority of priorities) {
      if (!this.#isFree(pool, priority, nowMs)) break;
      lowest = priority;
    }
    return lowest;
  }

  /** One timer: it may fire too early, where who was to expire first has been let in. */
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

/** What came of asking for a place. */
interface WaitingAnswer<T> {
  readonly place: QueuePlace<T> | undefined;
  /** Who had to go for it, or had waited for too long. */
  readonly dismissed: readonly QueueRefusal<T>[];
}
