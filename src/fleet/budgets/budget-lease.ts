import type { Cancel, Clock } from "../../core/base/clock.js";
import type { BudgetStore } from "../../store/coordination/budget-store.js";

/** Timeout of a renewal, in milliseconds. */
const renewTimeoutMs = 1_000;

/** Wait before the next renewal while lost replicas still have reservations, in milliseconds. */
const expiringWaitMs = 100;

interface BudgetLeaseParts {
  readonly store: Pick<BudgetStore, "renew">;
  readonly clock: Clock;
  readonly holder: string;
  readonly leaseMs: number;
  readonly heartbeatMs: number;
  /** Called after each renewal, answered or not, with the number of reservations it expired. */
  readonly onBeat: (expiredCount: number) => void;
}

/**
 * The lease of a replica's reservations, renewed from its first use of budgets on. Each renewal
 * also expires the reservations of lost replicas, so it continues even if nothing is reserved.
 */
export class BudgetLease {
  readonly #parts: BudgetLeaseParts;
  #cancel: Cancel | undefined;
  #isBegun = false;
  #isStopped = false;

  constructor(parts: BudgetLeaseParts) {
    this.#parts = parts;
  }

  /** Starts the renewals on the first call. Further calls do nothing. */
  begin(): void {
    if (this.#isBegun) return;
    this.#isBegun = true;
    this.#schedule(this.#parts.heartbeatMs);
  }

  /** Stops the renewals. */
  stop(): void {
    this.#isStopped = true;
    this.#cancel?.();
  }

  #schedule(delayMs: number): void {
    if (this.#isStopped) return;
    this.#cancel = this.#parts.clock.schedule(delayMs, () => void this.#beat());
  }

  async #beat(): Promise<void> {
    const { store, clock, holder, leaseMs, heartbeatMs, onBeat } = this.#parts;
    const dueMs = clock.monotonicMs() + heartbeatMs;
    let expiredCount = 0;
    try {
      const deadlineMs = clock.monotonicMs() + renewTimeoutMs;
      ({ expiredCount } = await store.renew(holder, leaseMs, deadlineMs));
    } catch {
      // Calls that a caller waits for report whether the store is unreachable.
    }
    onBeat(expiredCount);
    this.#schedule(expiredCount > 0 ? expiringWaitMs : Math.max(0, dueMs - clock.monotonicMs()));
  }
}
