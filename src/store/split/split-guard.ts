import { Breaker, type BreakerOptions, defaultBreakerOptions } from "../../core/base/breaker.js";
import type { Clock } from "../../core/base/clock.js";
import { isServiceError, ServiceError } from "../../core/base/errors.js";
import type { Compensation } from "../../core/limits/compensation.js";
import type { LimitKey } from "../../core/limits/limit.js";
import type { StoredBucket, StoreOutcome, StoreRequest } from "../limit-store.js";
import type { GivenBack, SplitPart } from "./split-part.js";

/**
 * Probes of a part come more often than those of the whole store: else one that looks whether the
 * store is back might find a part that is not yet to be asked, and take it for a failure.
 */
const partBreakerOptions: BreakerOptions = { ...defaultBreakerOptions, probeAfterMsMax: 250 };

/**
 * A part with a breaker of its own, so that one node that hangs costs the requests which need it a
 * budget for a tenth of a second, and not until its connection is given up.
 *
 * Only time-outs count. Whatever a part says at once costs nobody any time, and while a slot moves
 * it says of some requests that they cannot be decided, and decides the others.
 */
export class SplitGuard implements SplitPart {
  readonly #part: SplitPart;
  readonly #clock: Clock;
  readonly #breaker = new Breaker(partBreakerOptions);

  constructor(part: SplitPart, clock: Clock) {
    this.#part = part;
    this.#clock = clock;
  }

  /** Rejects with STORE_CIRCUIT_OPEN at once while the part is left alone; nothing is charged. */
  take(batch: readonly StoreRequest[], deadlineMs: number): Promise<readonly StoreOutcome[]> {
    return this.#guarded(
      () => this.#part.take(batch, deadlineMs),
      (outcomes) => outcomes.every((one) => one.kind === "failed" && one.code === "STORE_TIMEOUT"),
    );
  }

  /** As `take`: while the part is left alone, nothing is given back. */
  giveBack(compensations: readonly Compensation[], deadlineMs: number): Promise<GivenBack> {
    return this.#guarded(
      () => this.#part.giveBack(compensations, deadlineMs),
      () => false,
    );
  }

  peek(key: LimitKey, deadlineMs: number): Promise<StoredBucket | undefined> {
    return this.#part.peek(key, deadlineMs);
  }

  forget(keys: readonly LimitKey[], deadlineMs: number): Promise<number> {
    return this.#part.forget(keys, deadlineMs);
  }

  ping(deadlineMs: number): Promise<void> {
    return this.#part.ping(deadlineMs);
  }

  verify(deadlineMs: number): Promise<void> {
    return this.#part.verify(deadlineMs);
  }

  close(): Promise<void> {
    return this.#part.close();
  }

  async #guarded<T>(ask: () => Promise<T>, isTimeout: (answer: T) => boolean): Promise<T> {
    if (!this.#breaker.admits(this.#clock.monotonicMs())) {
      throw new ServiceError("STORE_CIRCUIT_OPEN");
    }
    try {
      const answer = await ask();
      this.#note(isTimeout(answer));
      return answer;
    } catch (thrown) {
      this.#note(isServiceError(thrown) && thrown.code === "STORE_TIMEOUT");
      throw thrown;
    }
  }

  #note(isTimeout: boolean): void {
    if (isTimeout) this.#breaker.failed(this.#clock.monotonicMs());
    else this.#breaker.succeeded();
  }
}
