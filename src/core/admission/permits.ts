import { assert } from "../base/errors.js";
import type { Demand } from "../concurrency/concurrency-limit.js";
import { ClassCounts } from "./class-counts.js";
import type { Priority } from "./priority.js";

/** Ended requests for which the demand of critical ones is remembered. */
const demandMemoryCount = 500;

/**
 * Permits in use by class, and what has been asked for. A limit belongs to who asks, because it
 * changes at any time: a lower one cancels nothing, it only lets nobody in until enough have been
 * given back.
 *
 * Each taken permit is given back exactly once; `Admission` sees to that, and a count below zero
 * fails an assert.
 */
export class Permits implements Demand {
  readonly #byClass = new ClassCounts();
  #peakCount = 0;
  #refusedCount = 0;
  /** Requests that asked, critical ones among them, and that ended; older ones count less. */
  #askedCount = 0;
  #criticalAskedCount = 0;
  #endedCount = 0;

  /** Permits taken and not given back. */
  get inUseCount(): number {
    return this.#byClass.from("low");
  }

  /** The same of a class and of those above it. */
  inUseFrom(priority: Priority): number {
    return this.#byClass.from(priority);
  }

  /**
   * Critical requests that asked lately, over all that ended: what they need of a service that is
   * full. Infinity before anything has ended.
   */
  get criticalRatio(): number {
    return this.#endedCount === 0
      ? Number.POSITIVE_INFINITY
      : this.#criticalAskedCount / this.#endedCount;
  }

  /** Requests that asked lately, over those that ended: the load, as a multiple of what is done. */
  get loadRatio(): number | undefined {
    return this.#endedCount === 0 ? undefined : this.#askedCount / this.#endedCount;
  }

  /** Takes one, whatever the limit is. */
  take(priority: Priority): void {
    this.noteAsked(priority);
    this.#byClass.add(priority, 1);
    this.#peakCount = Math.max(this.#peakCount, this.inUseCount);
  }

  /** Gives one back; one whose caller has left unanswered is none that the service has ended. */
  giveBack(priority: Priority, isLeft = false): void {
    assert(this.#byClass.of(priority) > 0, "a permit is given back once");
    this.#byClass.add(priority, -1);
    const kept = 1 - 1 / demandMemoryCount;
    this.#askedCount *= kept;
    this.#criticalAskedCount *= kept;
    this.#endedCount = this.#endedCount * kept + (isLeft ? 0 : 1);
  }

  /** Somebody was turned away for want of a permit, or before: counts as demand. */
  noteRefused(priority: Priority): void {
    this.noteAsked(priority);
    this.#refusedCount += 1;
  }

  /** Somebody asked, whatever came of it. */
  noteAsked(priority: Priority): void {
    this.#askedCount += 1;
    if (priority === "critical") this.#criticalAskedCount += 1;
  }

  /** The most in use since this was called last, and how many were turned away. */
  takeDemand(): number {
    const demand = this.#peakCount + this.#refusedCount;
    this.#peakCount = this.inUseCount;
    this.#refusedCount = 0;
    return demand;
  }
}

/** One key's permits in use. */
export interface KeyCount {
  /** Where they go back to. */
  readonly owner: PermitsByKey;
  /** Undefined for the count that many keys share. */
  readonly key: string | undefined;
  inUseCount: number;
}

interface KeyedPermitsOptions {
  /** Permits of one key, from 1. */
  readonly max: number;
  /** Keys with permits in use that are told apart; new ones above share one count. */
  readonly keysMax: number;
}

/**
 * Permits in use by key, each key with the same limit. A key is forgotten with its last permit, so
 * that memory is bounded by what is in flight and by `keysMax`.
 */
export class PermitsByKey {
  readonly #options: KeyedPermitsOptions;
  readonly #counts = new Map<string, KeyCount>();
  /** For all keys that found no room: together they have one key's permits. */
  readonly #others: KeyCount = { owner: this, key: undefined, inUseCount: 0 };

  constructor(options: KeyedPermitsOptions) {
    this.#options = options;
  }

  /** Keys told apart now. */
  get keyCount(): number {
    return this.#counts.size;
  }

  /** Whether the key has a permit left. */
  hasRoom(key: string): boolean {
    const known = this.#counts.get(key);
    if (known !== undefined) return known.inUseCount < this.#options.max;
    return !this.#isFull || this.#others.inUseCount < this.#options.max;
  }

  /** Takes one, whatever is in use; it goes back to what this returns. */
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
