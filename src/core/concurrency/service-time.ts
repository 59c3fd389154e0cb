/** Busy time that `ServiceTime` remembers, in milliseconds. */
const serviceTimeMemoryMs = 10_000;

/** Maximum service time that lengthens the memory: a hang must not be remembered for long. */
const slowMsMax = 5_000;

/** Time without a busy slot after which measurements are forgotten, in milliseconds. */
export const serviceTimeIdleMsMax = 2_000;

/** Maximum measured service time, in milliseconds. A service that answers nothing reaches it. */
export const serviceTimeMsMax = 3_600_000;

/** How long a `ServiceTime` remembers. */
interface ServiceTimeMemory {
  /** Time constant of forgetting, above 0. Default `serviceTimeMemoryMs` */
  readonly memoryMs?: number;
  /** Minimum memory in service times, if that is longer. Default 0 */
  readonly memoryCount?: number;
}

/**
 * Measures how long a request holds a slot: busy time divided by completions, both decayed:
 *
 *     service time = 1 / mu = busy slot time / completions
 *
 * By Little's law, this is the mean time of a request, whatever its distribution. Unlike the mean
 * of requests that ended, it does not wait for slow ones: while none ends, busy time and the
 * estimate grow, so a service that hangs is noticed at once.
 *
 * It forgets only while a slot is busy, since only then there is something to measure. But without
 * any use, measurements expire after `serviceTimeIdleMsMax`: after a service has hung, no request
 * with a deadline would be admitted any more to find out that the service has recovered.
 *
 * Example: 10 slots busy for 1 s, in which 200 requests end: 10 s / 200 = 50 ms, mu 20 a second.
 */
export class ServiceTime {
  readonly #memoryMs: number;
  readonly #memoryCount: number;
  #busyCount = 0;
  /** The time that both sums refer to. */
  #atMs = Number.NEGATIVE_INFINITY;
  /** The time since which no slot is busy. */
  #idleSinceMs = Number.NEGATIVE_INFINITY;
  #busyMs = 0;
  #completions = 0;
  #hasCompletions = false;

  constructor({ memoryMs = serviceTimeMemoryMs, memoryCount = 0 }: ServiceTimeMemory = {}) {
    this.#memoryMs = memoryMs;
    this.#memoryCount = memoryCount;
  }

  /**
   * Sets the number of slots that are busy from now on: requests in flight, at most the limit. A
   * request in flight above the limit waits for a slot somewhere and does not hold one.
   */
  occupy(busyCount: number, nowMs: number): void {
    this.#advance(nowMs);
    if (busyCount === 0 && this.#busyCount > 0) this.#idleSinceMs = nowMs;
    this.#busyCount = busyCount;
  }

  /** Counts a request that ended, in any way, and left its slot. Call `occupy` afterwards. */
  complete(nowMs: number): void {
    this.#advance(nowMs);
    this.#completions += 1;
    this.#hasCompletions = true;
  }

  /** Returns the present service time, in milliseconds. Undefined if none was measured. */
  serviceMs(nowMs: number): number | undefined {
    this.#advance(nowMs);
    if (!this.#hasCompletions) return undefined;
    return Math.min(serviceTimeMsMax, this.#busyMs / this.#completions);
  }

  /** Advances both sums to a time. Busy slots add the integral of what is remembered. */
  #advance(nowMs: number): void {
    const elapsedMs = nowMs - this.#atMs;
    if (elapsedMs <= 0) return;
    this.#atMs = nowMs;
    if (this.#busyCount === 0) {
      if (nowMs - this.#idleSinceMs > serviceTimeIdleMsMax) this.#forget();
      return;
    }
    const knownMs = this.#hasCompletions ? this.#busyMs / this.#completions : 0;
    const memoryMs = Math.max(this.#memoryMs, this.#memoryCount * Math.min(knownMs, slowMsMax));
    const keptRatio = Math.exp(-elapsedMs / memoryMs);
    this.#busyMs = this.#busyMs * keptRatio + this.#busyCount * memoryMs * (1 - keptRatio);
    this.#completions *= keptRatio;
  }

  #forget(): void {
    this.#busyMs = 0;
    this.#completions = 0;
    this.#hasCompletions = false;
  }
}
