import { assert } from "../base/errors.js";
import type { Demand } from "../concurrency/concurrency-limit.js";
import { ClassCounts } from "./class-counts.js";
import type { Priority } from "./priority.js";

/** Number of ended requests over which demand is remembered. */
const demandMemoryCount = 500;

/**
 * Permits in use by class, and the demand for them. The caller applies the limit, because it may
 * change at any time: a lower limit cancels no request, it only admits none until enough permits
 * have been given back.
 *
 * Each taken permit is given back exactly once; `Admission` ensures that, and a count below zero
 * fails an assert.
 */
export class Permits implements Demand {
  readonly #byClass = new ClassCounts();
  #peakCount = 0;
  #refusedCount = 0;
  /** Requests that asked, critical ones of them, and requests that ended; older ones count less. */
  #askedCount = 0;
  #criticalAskedCount = 0;
  #endedCount = 0;

  /** Permits taken and not given back. */
  get inUseCount(): number {
    return this.#byClass.from("low");
  }

  /** Permits in use by a class and the classes above it. */
  inUseFrom(priority: Priority): number {
    return this.#byClass.from(priority);
  }

  /**
   * Critical requests that asked recently, over all that ended: the part of a full service that
   * they need. Infinity before a request has ended.
   */
  get criticalRatio(): number {
    return this.#endedCount === 0
      ? Number.POSITIVE_INFINITY
      : this.#criticalAskedCount / this.#endedCount;
  }

  /** Requests that asked recently, over those that ended: load as a multiple of throughput. */
  get loadRatio(): number | undefined {
    return this.#endedCount === 0 ? undefined : this.#askedCount / this.#endedCount;
  }

  /** Takes one, whatever the limit is. */
  take(priority: Priority): void {
    this.noteAsked(priority);
    this.#byClass.add(priority, 1);
    this.#peakCount = Math.max(this.#peakCount, this.inUseCount);
  }

  /** Gives one back. If its caller left without a response, the service has not ended it. */
  giveBack(priority: Priority, isLeft = false): void {
    assert(this.#byClass.of(priority) > 0, "a permit is given back once");
    this.#byClass.add(priority, -1);
    const kept = 1 - 1 / demandMemoryCount;
    this.#askedCount *= kept;
    this.#criticalAskedCount *= kept;
    this.#endedCount = this.#endedCount * kept + (isLeft ? 0 : 1);
  }

  /** Counts as demand a request that was refused for lack of a permit, or before that. */
  noteRefused(priority: Priority): void {
    this.noteAsked(priority);
    this.#refusedCount += 1;
  }

  /** Counts a request, whatever its result. */
  noteAsked(priority: Priority): void {
    this.#askedCount += 1;
    if (priority === "critical") this.#criticalAskedCount += 1;
  }

  /** Returns the maximum in use since the last call, plus the number of refused requests. */
  takeDemand(): number {
    const demand = this.#peakCount + this.#refusedCount;
    this.#peakCount = this.inUseCount;
    this.#refusedCount = 0;
    return demand;
  }
}

/** One key's permits in use. */
export interface KeyCount {
  /** Where the permits are given back. */
  readonly owner: PermitsByKey;
  /** Undefined for the count that many keys share. */
  readonly key: string | undefined;
  inUseCount: number;
}

interface KeyedPermitsOptions {
  /** Permits of one key, from 1. */
  readonly max: number;
  /** Maximum number of keys with a count of their own; new ones above it share one count. */
  readonly keysMax: number;
}

/**
 * Permits in use by key, each key with the same limit. A key is forgotten with its last permit, so
 * memory is bounded by the requests in flight and by `keysMax`.
 */
export class PermitsByKey {
  readonly #options: KeyedPermitsOptions;
  readonly #counts = new Map<string, KeyCount>();
  /** For all keys above `keysMax`: together they have one key's permits. */
  readonly #others: KeyCount = { owner: this, key: undefined, inUseCount: 0 };

  constructor(options: KeyedPermitsOptions) {
    this.#options = options;
  }

  /** Number of keys with a count of their own. */
  get keyCount(): number {
    return this.#counts.size;
  }

  /** Whether the key has a permit left. */
  hasRoom(key: string): boolean {
    const known = this.#counts.get(key);
    if (known !== undefined) return known.inUseCount < this.#options.max;
    return !this.#isFull || this.#others.inUseCount < this.#options.max;
  }

  /** Takes one, whatever is in use. It is given back to the count that this returns. */
  take(key: string): KeyCount {
    const count = this.#counts.get(key) ?? (this.#isFull ? this.#others : this.#begin(key));
    count.inUseCount += 1;
    return count;
  }

  /** Gives one back to the count that it was taken from. */
  giveBack(count: KeyCount): void {
    assert(count.owner === this && count.inUseCount > 0, "a permit is given back once");
    count.inUseCount -= 1;
    if (count.inUseCount === 0 && count.key !== undefined) this.#counts.delete(count.key);
  }

  get #isFull(): boolean {
    return this.#counts.size >= this.#options.keysMax;
  }

  #begin(key: string): KeyCount {
    const count: KeyCount = { owner: this, key, inUseCount: 0 };
    this.#counts.set(key, count);
    return count;
  }
}
