import type { Cancel, Clock } from "../../core/base/clock.js";
import type { Settling } from "./repeated-operations.js";

/** Maximum wait of a settlement for its reservation, since it was first sent, in milliseconds. */
export const earlyMsMax = 10_000;

/** Time between two attempts, in milliseconds. */
const earlyRetryMs = 1_000;

/** Maximum number of waiting settlements. Further ones are abandoned at once. */
export const earlySettlementsMax = 10_000;

/**
 * Settlements of other replicas' calls that the store does not know yet: a replica that admits a
 * call while the store is unreachable reserves it later, maybe after another saw its response.
 */
export class EarlySettlements {
  readonly #clock: Clock;
  readonly #settle: (settling: Settling) => void;
  #waiting: Settling[] = [];
  #cancel: Cancel | undefined;

  /** @param settle sends a settlement again */
  constructor(clock: Clock, settle: (settling: Settling) => void) {
    this.#clock = clock;
    this.#settle = settle;
  }

  /** 0 to `earlySettlementsMax`. */
  get count(): number {
    return this.#waiting.length;
  }

  /** Adds one. @returns false if it is not sent again: it has waited too long, or too many wait */
  add(settling: Settling): boolean {
    const nowMs = this.#clock.monotonicMs();
    const { sentMs = nowMs } = settling;
    if (nowMs - sentMs >= earlyMsMax || this.count >= earlySettlementsMax) return false;
    this.#waiting.push(settling);
    this.#cancel ??= this.#clock.schedule(earlyRetryMs, () => this.sendAll());
    return true;
  }

  /** Sends all of them again now. */
  sendAll(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    for (const settling of this.#waiting.splice(0)) this.#settle(settling);
  }
}
