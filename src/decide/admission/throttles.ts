import { Throttle } from "../../core/admission/throttle.js";
import { GenerationalMap } from "../../core/collections/generational-map.js";
import type { ThrottlePolicy } from "../../policy/services/admission-blocks.js";

/** The most bytes of callers' counts that are kept at once, per service. */
export const throttledCallersBytesMax = 5_242_880;

/** About how much the counts of one caller take, in bytes, beside its name. */
export const throttleBytes = 500;

/** The throttle of a service and, where the policy says so, one for each caller beside it. */
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

  /** Callers whose counts are kept. */
  get callerCount(): number {
    return this.#callers?.size ?? 0;
  }

  /** The share of all requests to refuse now. */
  rejectRatio(nowMs: number): number {
    return this.#service.rejectRatio(nowMs);
  }

  /** @param draw uniform in [0, 1) */
  rejects(caller: string, draw: number, nowMs: number): boolean {
    if (this.#service.rejects(nowMs, draw)) return true;
    return this.#callers?.get(caller)?.rejects(nowMs, draw) === true;
  }

  /** The service took a request on. */
  accepted(caller: string, nowMs: number): void {
    this.#service.accepted(nowMs);
    this.#of(caller)?.accepted(nowMs);
  }

  /** The service refused a request, or it was refused here for the throttle. */
  refused(caller: string, nowMs: number): void {
    this.#service.refused(nowMs);
    this.#of(caller)?.refused(nowMs);
  }

  /** Of the callers that are too many some are not counted by themselves, only by the service. */
  #of(caller: string): Throttle | undefined {
    const known = this.#callers?.get(caller);
    if (known !== undefined || this.#callers?.wantsMore() !== true) return known;
    const throttle = new Throttle(this.settings);
    this.#callers.set(caller, throttle);
    return throttle;
  }
}
