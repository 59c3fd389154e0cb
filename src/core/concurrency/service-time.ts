/** For how much busy time `ServiceTime` remembers, in milliseconds. */
const serviceTimeMemoryMs = 10_000;

/** Slower ones are remembered as those are: a service that hangs must not be for long. */
const slowMsMax = 5_000;

/** How long nothing may be in a slot until what was measured before is given up. */
export const serviceTimeIdleMsMax = 2_000;

/** What a measurement says at most, in milliseconds: a service that answers nothing ends here. */
export const serviceTimeMsMax = 3_600_000;

/** How long a `ServiceTime` remembers. */
interface ServiceTimeMemory {
  /** Time constant of forgetting, above 0. Default `serviceTimeMemoryMs` */
  readonly memoryMs?: number;
  /** Longer where so many requests in a row take longer. Default 0 */
  readonly memoryCount?: number;
}

/**
 * How long a request holds a slot, measured as busy time over completions, both decayed:
 *
 *     service time = 1 / mu = busy slot time / completions
 *
 * By Little's law that is the mean time a request takes, whatever its distribution, and unlike a
 * mean of the times that ended it does not wait for slow ones: while nothing ends, busy time grows
 * and the estimate with it, so a service that hangs is seen at once.
 *
 * It forgets while something is in a slot, since only then something is to be seen. But what was
 * measured does not outlive `serviceTimeIdleMsMax` without any use: after a service has hung,
 * nobody with a deadline would be let in any more to find out that it is back.
 *
 * Example: 10 slots busy for 1 s, in which 200 requests end: 10 s / 200 = 50 ms, mu 20 a second.
 */
export class ServiceTime {
  readonly #memoryMs: number;
  readonly #memoryCount: number;
  #busyCount = 0;
  /** What both sums stand for. */
  #atMs = Number.NEGATIVE_INFINITY;
  /** Since when nothing is in a slot. */
  #idleSinceMs = Number.NEGATIVE_INFINITY;
  #busyMs = 0;
  #completions = 0;
  #hasCompletions = false;

  constructor({ memoryMs = serviceTimeMemoryMs, memoryCount = 0 }: ServiceTimeMemory = {}) {
    this.#memoryMs = memoryMs;
    this.#memoryCount = memoryCount;
  }

  /**
   * From now on so many slots are busy: requests in flight, at most the limit. What is in flight
   * above the limit waits for a slot somewhere, it does not have one.
   */
  occupy(busyCount: number, nowMs: number): void {
    this.#advance(nowMs);
    if (busyCount === 0 && this.#busyCount > 0) this.#idleSinceMs = nowMs;
    this.#busyCount = busyCount;
  }

  /** A request ended and left its slot, however it ended; then `occupy` is told, too. */
  complete(nowMs: number): void {
    this.#advance(nowMs);
    this.#completions += 1;
    this.#hasCompletions = true;
  }

  /** The service time now, in milliseconds; undefined where none was measured. */
  serviceMs(nowMs: number): number | undefined {
    this.#advance(nowMs);
    if (!this.#hasCompletions) return undefined;
    return Math.min(serviceTimeMsMax, this.#busyMs / this.#completions);
  }

  /** Brings both sums to a time: busy slots add the integral of what will be remembered. */
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
