/** Source: RFC 8289, "Controlled Delay Active Queue Management". */
export interface CodelSettings {
  /** The sojourn time that may stand: more for requests than the 5 of the RFC for packets. */
  readonly targetMs: number;
  /** How long it may stand above the target before one is dropped. */
  readonly intervalMs: number;
}

/** A request as it leaves the queue. */
interface Departure {
  /** How long it was in the queue. */
  readonly sojournMs: number;
  /** No other one is behind it. */
  readonly isLast: boolean;
}

/**
 * How many intervals after its last drop CoDel still remembers how fast it had to drop. Source: RFC
 * 8289, section 5.5: returning to dropping soon goes on from the rate that had worked.
 */
const memoryIntervalsCount = 16;

/**
 * CoDel's test at the head of a queue: short queues that come and go are good, one that stands is
 * not. Once every request of an interval has waited longer than the target, it drops one, and the
 * next ones at times that come closer by the square root of their count,
 *
 *     next drop = this drop + interval / sqrt(count)
 *
 * until one has waited less. The last one in the queue is never dropped: it delays nobody.
 *
 * Example: interval 1 s; drops 0, 1, 1.71, 2.28 seconds after the first.
 *
 * Source: RFC 8289, sections 3 and 5, told one departure at a time.
 */
export class Codel {
  readonly #settings: CodelSettings;
  /** When the sojourn time will have been above the target for an interval. */
  #aboveForIntervalMs: number | undefined;
  #isDropping = false;
  #nextDropMs = Number.NEGATIVE_INFINITY;
  #count = 0;
  /** The count with which it last began to drop. */
  #beginningCount = 0;

  constructor(settings: CodelSettings) {
    this.#settings = settings;
  }

  /** Whether it is in a run of drops. */
  get isDropping(): boolean {
    return this.#isDropping;
  }

  /** Whether to drop a request that would be let in now. */
  drops(departure: Departure, nowMs: number): boolean {
    if (!this.#isAboveForLong(departure, nowMs)) {
      this.#isDropping = false;
      return false;
    }
    if (!this.#isDropping) {
      this.#begin(nowMs);
      return true;
    }
    if (nowMs < this.#nextDropMs) return false;
    this.#count += 1;
    this.#nextDropMs = this.#after(this.#nextDropMs);
    return true;
  }

  /** The queue is empty: whatever stood in it does not any more. */
  emptied(): void {
    this.#aboveForIntervalMs = undefined;
    this.#isDropping = false;
  }

  #isAboveForLong({ sojournMs, isLast }: Departure, nowMs: number): boolean {
    const { targetMs, intervalMs } = this.#settings;
    if (sojournMs < targetMs || isLast) {
      this.#aboveForIntervalMs = undefined;
      return false;
    }
    this.#aboveForIntervalMs ??= nowMs + intervalMs;
    return nowMs >= this.#aboveForIntervalMs;
  }

  #begin(nowMs: number): void {
    const addedCount = this.#count - this.#beginningCount;
    const memoryMs = memoryIntervalsCount * this.#settings.intervalMs;
    const isRemembered = addedCount > 1 && nowMs - this.#nextDropMs < memoryMs;
    this.#isDropping = true;
    this.#count = isRemembered ? addedCount : 1;
    this.#beginningCount = this.#count;
    this.#nextDropMs = this.#after(nowMs);
  }

  #after(dropMs: number): number {
    return dropMs + this.#settings.intervalMs / Math.sqrt(this.#count);
  }
}
