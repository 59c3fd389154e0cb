import { DecayedSum } from "../collections/decayed-sum.js";

/** Throttling as a client would do it. Source: Google SRE book, "Handling Overload". */
export interface ThrottleSettings {
  /** How many requests an accept stands for, at least 1. */
  readonly k: number;
  /** How fast both counts forget: the time constant. */
  readonly memoryMs: number;
}

/**
 * Refuses here what a service, or a caller's share of it, would refuse anyway: a service that is
 * busy with refusing has less time to serve. Refused is at random the ratio
 *
 *     max(0, (requests - k x accepts) / (requests + 1))
 *
 * Both counts forget with the time constant `memoryMs`. What is refused here counts as a request:
 * so more is held back while the service does not recover, and since the ratio stays below 1,
 * something always goes through to find out.
 *
 * After an outage that outlasts the memory, accepts have to grow back from nothing: e-fold each
 * `memoryMs / (k - 1)`. At 100 requests a second, k 2 and a memory of 30 s, all pass again after
 * some 4.5 minutes; with one of 5 s, after 45 s.
 *
 * Example: k 2; of many requests all, half and a tenth were accepted: 0, 0 and 0.8 are refused.
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

  /** The share to refuse now, from 0 to below 1. */
  rejectRatio(nowMs: number): number {
    const requests = this.#requests.at(nowMs);
    const accepts = this.#accepts.at(nowMs);
    return Math.max(0, (requests - this.#k * accepts) / (requests + 1));
  }

  /** @param draw uniform in [0, 1) */
  rejects(nowMs: number, draw: number): boolean {
    return draw < this.rejectRatio(nowMs);
  }

  /** The service took a request and did its work, whatever came of it. */
  accepted(nowMs: number): void {
    this.#requests.add(1, nowMs);
    this.#accepts.add(1, nowMs);
  }

  /** The service refused a request, or it was refused here. */
  refused(nowMs: number): void {
    this.#requests.add(1, nowMs);
  }
}
