import type { Cancel, Clock } from "../../core/base/clock.js";
import type { BudgetStore } from "../../store/coordination/budget-store.js";

/** How long a renewal may take, in milliseconds. */
const renewTimeoutMs = 1_000;

/** The wait before the next renewal while reservations of lost replicas are left. */
const expiringWaitMs = 100;

interface BudgetLeaseParts {
  readonly store: Pick<BudgetStore, "renew">;
  readonly clock: Clock;
  readonly holder: string;
  readonly leaseMs: number;
  readonly heartbeatMs: number;
  /** After each renewal, answered or not, with the reservations of others that it has expired. */
  readonly onBeat: (expiredCount: number) => void;
}

/**
 * The lease of a replica's reservations: renewed from its first use of budgets on. Each renewal
 * also expires what lost replicas have left, so it goes on where nothing is reserved.
 */
export class BudgetLease {
  readonly #parts: BudgetLeaseParts;
  #cancel: Cancel | undefined;
  #isBegun = false;
  #isStopped = false;

  constructor(parts: BudgetLeaseParts) {
    this.#parts = parts;
  }

  /** The first use, or any later one. */
  begin(): void {
    if (this.#isBegun) return;
    this.#isBegun = true;
    this.#schedule(this.#parts.heartbeatMs);
  }

  /** No more renewals. */
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
      // Whether the store is away is said by calls that somebody waits for.
    }
    onBeat(expiredCount);
    this.#schedule(expiredCount > 0 ? expiringWaitMs : Math.max(0, dueMs - clock.monotonicMs()));
  }
}
