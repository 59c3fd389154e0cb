import { Throttle } from "../../core/admission/throttle.js";
import { GenerationalMap } from "../../core/collections/generational-map.js";
import type { ThrottlePolicy } from "../../policy/services/admission-blocks.js";

/** Maximum size of all callers' counts, per service, in bytes. */
export const throttledCallersBytesMax = 5_242_880;

/** Approximate size of the counts of one caller, without its name, in bytes. */
export const throttleBytes = 500;

/** The throttle of a service and, if the policy says so, another one for each caller. */
export class Throttles {
  readonly settings: ThrottlePolicy;
  readonly #service: Throttle;
  readonly #callers: GenerationalMap<string, Throttle> | undefined;

  constructor(settings: ThrottlePolicy) {
    this.settings = settings;
    this.#service = new Throttle(settings);
    this.#callers =
      settings.per === "caller"
        ? new GenerationalMap(throttledCallersBytesMax, ({ length }) => throttleBytes + 2 * length)
        : undefined;
  }

  /** Number of callers whose counts are kept. */
  get callerCount(): number {
    return this.#callers?.size ?? 0;
  }

  /** Fraction of all requests to refuse now. */
  rejectRatio(nowMs: number): number {
    return this.#service.rejectRatio(nowMs);
  }

  /** @param draw uniform in [0, 1) */
  rejects(caller: string, draw: number, nowMs: number): boolean {
    if (this.#service.rejects(nowMs, draw)) return true;
    return this.#callers?.get(caller)?.rejects(nowMs, draw) === true;
  }

  /** Records a request that the service accepted. */
  accepted(caller: string, nowMs: number): void {
    this.#service.accepted(nowMs);
    this.#of(caller)?.accepted(nowMs);
  }

  /** Records a request that the service or this throttle refused. */
  refused(caller: string, nowMs: number): void {
    this.#service.refused(nowMs);
    this.#of(caller)?.refused(nowMs);
  }

  /** If there are too many callers, some are counted only for the service. */
  #of(caller: string): Throttle | undefined {
    const known = this.#callers?.get(caller);
    if (known !== undefined || this.#callers?.wantsMore() !== true) return known;
    const throttle = new Throttle(this.settings);
    this.#callers.set(caller, throttle);
    return throttle;
  }
}
