import { type Priority, priorities } from "../../core/admission/priority.js";
import type { QueuePlace, QueueRefusal } from "../../core/admission/request-queue.js";
import type { Cancel, Clock } from "../../core/base/clock.js";
import type { AdmittedRequest } from "./admitted-request.js";
import type { PermitPool } from "./permit-pool.js";

interface AdmissionQueueParts {
  readonly clock: Clock;
  /** A bound on all pools together; may be one of them. */
  readonly whole: PermitPool<AdmittedRequest>;
  /** Lets a visit in that has left its queue. */
  readonly admit: (visit: AdmittedRequest, nowMs: number) => void;
  /** Refuses visits that have left their queues. */
  readonly dismiss: (dismissed: readonly QueueRefusal<AdmittedRequest>[], nowMs: number) => void;
}

/**
 * The queues of a service's pools: lets in who is next as permits come free, one of each pool in
 * turn, and refuses who has waited for too long. Whoever is told something may change the queues
 * meanwhile, so nothing is remembered over a call.
 */
export class AdmissionQueue {
  readonly #parts: AdmissionQueueParts;
  /** Pools in which somebody waits. */
  readonly #waiting = new Set<PermitPool<AdmittedRequest>>();
  #expiry: { readonly atMs: number; readonly cancel: Cancel } | undefined;

  constructor(parts: AdmissionQueueParts) {
    this.#parts = parts;
  }

  /** Whether a visit may go in at once: a permit is free for it, and for nobody who waits. */
  hasRoom(visit: AdmittedRequest, nowMs: number): boolean {
    const { pool, priority } = visit;
    if (!this.#bears(visit, nowMs) || !this.#isFree(pool, priority, nowMs)) return false;
    if (pool.waitingCount === 0) return true;
    const lowest = this.#lowestFree(pool, nowMs) ?? priority;
    return !pool.hasNext({ lowest, mayGo: (other) => this.#bears(other, nowMs) });
  }

  /** Whether a visit may wait, as far as its peer goes; see `PermitPool.mayWait`. */
  mayWait({ pool, request: { peer } }: AdmittedRequest, nowMs: number): boolean {
    const { whole } = this.#parts;
    return pool.hasQueue && pool.mayWait(peer, nowMs) && whole.mayWait(peer, nowMs);
  }

  /** Lets a visit wait. @returns its place, or undefined where there is none */
  enter(visit: AdmittedRequest, nowMs: number): WaitingAnswer {
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

  #serveOne(pool: PermitPool<AdmittedRequest>, nowMs: number): boolean {
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
  #bears({ pool, request: { peer } }: AdmittedRequest, nowMs: number): boolean {
    return pool.bears(peer, nowMs) && this.#parts.whole.bears(peer, nowMs);
  }

  #isFree(pool: PermitPool<AdmittedRequest>, priority: Priority, nowMs: number): boolean {
    const { whole } = this.#parts;
    return pool.isFree(priority, nowMs) && (pool === whole || whole.isFree(priority, nowMs));
  }

  /** The lowest class that a permit is free for, as it is then for all above it. */
  #lowestFree(pool: PermitPool<AdmittedRequest>, nowMs: number): Priority | undefined {
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
interface WaitingAnswer {
  readonly place: QueuePlace<AdmittedRequest> | undefined;
  /** Who had to go for it, or had waited for too long. */
  readonly dismissed: readonly QueueRefusal<AdmittedRequest>[];
}
