/** Source: RFC 8289, "Controlled Delay Active Queue Management". */
export interface CodelSettings {
  /** Acceptable sojourn time of a standing queue: more than the RFC's 5 ms for packets. */
  readonly targetMs: number;
  /** How long sojourn times may stay above the target before a request is dropped. */
  readonly intervalMs: number;
}

/** A request as it leaves the queue. */
interface Departure {
  /** How long it was in the queue. */
  readonly sojournMs: number;
  /** Whether no other request is behind it. */
  readonly isLast: boolean;
}

/**
 * Number of intervals after its last drop for which CoDel remembers its drop rate. Source: RFC
 * 8289, section 5.5: dropping that resumes soon continues from the rate that worked.
 */
const memoryIntervalsCount = 16;

/**
 * CoDel's test at the head of a queue: a short queue that comes and goes is good, a standing queue
 * is not. Once all requests of an interval have waited longer than the target, it drops one. The
 * next drops follow at times that come closer by the square root of their count,
 *
 *     next drop = this drop + interval / sqrt(count)
 *
 * until a request has waited less. The last one in the queue is never dropped: it delays no other.
 *
 * Example: interval 1 s; drops 0, 1, 1.71, 2.28 seconds after the first.
 *
 * Source: RFC 8289, sections 3 and 5, applied to one departure at a time.
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

  /** Reports whether to drop a request that would be admitted now. */
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

  /** Notes that the queue is empty, so that no queue stands any more. */
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
