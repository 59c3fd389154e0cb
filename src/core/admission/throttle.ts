import { DecayedSum } from "../collections/decayed-sum.js";

/** Settings of client-side throttling. Source: Google SRE book, "Handling Overload". */
export interface ThrottleSettings {
  /** Requests allowed for each accepted one, at least 1. */
  readonly k: number;
  /** Time constant with which both counts decay. */
  readonly memoryMs: number;
}

/**
 * Refuses requests that a service, or a caller's share of it, would refuse anyway: a service that
 * is busy with refusals has less time to serve. The ratio of requests that it refuses at random is
 *
 *     max(0, (requests - k x accepts) / (requests + 1))
 *
 * Both counts decay with the time constant `memoryMs`. A request refused here counts as a request,
 * so more are refused while the service does not recover. The ratio stays below 1, so some requests
 * always pass and show whether it has recovered.
 *
 * After an outage longer than the memory, accepts grow from nothing again, by a factor of e each
 * `memoryMs / (k - 1)`. At 100 requests a second, k 2 and a memory of 30 s, all pass again after
 * some 4.5 minutes; with one of 5 s, after 45 s.
 *
 * Example: k 2; if all, half or a tenth of many requests are accepted, it refuses 0, 0 or 0.8.
 *
 * Source: Google, "Site Reliability Engineering", chapter 21, "Client-Side Throttling".
 */
export class Throttle {
  readonly #k: number;
  readonly #requests: DecayedSum;
  readonly #accepts: DecayedSum;

  /** @param settings `k` at least 1, `memoryMs` above 0 */
  constructor({ k, memoryMs }: ThrottleSettings) {
    this.#k = k;
    this.#requests = new DecayedSum(memoryMs);
    this.#accepts = new DecayedSum(memoryMs);
  }

  /** Returns the share to refuse now, from 0 to below 1. */
  rejectRatio(nowMs: number): number {
    const requests = this.#requests.at(nowMs);
    const accepts = this.#accepts.at(nowMs);
    return Math.max(0, (requests - this.#k * accepts) / (requests + 1));
  }

  /** @param draw uniform in [0, 1) */
  rejects(nowMs: number, draw: number): boolean {
    return draw < this.rejectRatio(nowMs);
  }

  /** Counts a request that the service accepted, whatever its result. */
  accepted(nowMs: number): void {
    this.#requests.add(1, nowMs);
    this.#accepts.add(1, nowMs);
  }

  /** Counts a request that was refused by the service or here. */
  refused(nowMs: number): void {
    this.#requests.add(1, nowMs);
  }
}
