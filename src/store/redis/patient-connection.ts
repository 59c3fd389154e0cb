import type { Clock, Random } from "../../core/base/clock.js";
import { ServiceError, toServiceError } from "../../core/base/errors.js";
import { callMsMax } from "./redis-connection.js";
import type { ScriptCall, ScriptReply, StoreConnection } from "./scripts/connection.js";

interface PatientConnectionOptions {
  readonly connection: StoreConnection;
  readonly clock: Clock;
  readonly random: Random;
}

/** Maximum number of calls, including those that wait for their next attempt. More fail at once. */
export const patientCallsMax = 64;

/** Maximum wait of one attempt for its reply, in milliseconds. */
export const attemptMsMax = 1_000;

/** Minimum and maximum wait between two attempts, in milliseconds. */
export const retryMsMin = 100;
/** See `retryMsMin`. */
export const retryMsMax = 2_000;

/**
 * A connection for work that can wait. A call that failed for a temporary reason is repeated after
 * 0.1 to 2 s until its deadline. An attempt that timed out may have run, so this connection is only
 * for scripts that may run twice. Charges may not.
 */
export class PatientConnection implements StoreConnection {
  readonly #options: PatientConnectionOptions;
  readonly #wakers = new Set<() => void>();
  #callCount = 0;

  constructor(options: PatientConnectionOptions) {
    this.#options = options;
  }

  /** Rejects with the last attempt's error once no further one fits before the deadline. */
  async run(call: ScriptCall): Promise<ScriptReply> {
    if (this.#callCount >= patientCallsMax) {
      throw new ServiceError("STORE_UNAVAILABLE", "Too many calls are waiting for the connection.");
    }
    const deadlineMs = Math.min(call.deadlineMs, this.#options.clock.monotonicMs() + callMsMax);
    this.#callCount += 1;
    try {
      return await this.#runUntil({ ...call, deadlineMs });
    } finally {
      this.#callCount -= 1;
    }
  }

  /** Ends the waits between attempts. The next attempts then find the connection closed. */
  wake(): void {
    for (const waker of [...this.#wakers]) waker();
  }

  async #runUntil(call: ScriptCall): Promise<ScriptReply> {
    const { connection, clock, random } = this.#options;
    for (let spanMs = 2 * retryMsMin; ; spanMs = Math.min(2 * spanMs, retryMsMax)) {
      const deadlineMs = Math.min(call.deadlineMs, clock.monotonicMs() + attemptMsMax);
      try {
        return await connection.run({ ...call, deadlineMs });
      } catch (thrown) {
        const error = toServiceError(thrown);
        const delayMs = spanMs * (0.5 + random.next() / 2);
        if (!error.transient || clock.monotonicMs() + delayMs >= call.deadlineMs) throw error;
        await this.#wait(delayMs);
      }
    }
  }

  #wait(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const finish = (): void => {
        cancel();
        this.#wakers.delete(finish);
        resolve();
      };
      const cancel = this.#options.clock.schedule(delayMs, finish);
      this.#wakers.add(finish);
    });
  }
}
