import type { SettleResult } from "../../core/budgets/account.js";
import { type Usage, type UsageCount, usageCounts } from "../../core/budgets/usage.js";

/** Results of a budget's part in a reservation. */
export const reservationResults = [
  /** It had room. */
  "reserved",
  /** It had none, and refused the call. */
  "refused",
  /** It had none, and the call passed with headers. */
  "annotated",
  /** It had none, and the call was routed elsewhere. */
  "fallback",
  /** It had none, but only counts. */
  "dryRun",
] as const;

/** One of `reservationResults`. */
export type ReservationResult = (typeof reservationResults)[number];

/** Results of settlements. */
export const settleResults: readonly SettleResult[] = ["settled", "late", "unknown"];

/** Counters of one budget in this replica. Plain numbers, read when metrics are scraped. */
export class BudgetCounts {
  readonly reservations: Record<ReservationResult, number> = {
    reserved: 0,
    refused: 0,
    annotated: 0,
    fallback: 0,
    dryRun: 0,
  };
  /** Calls that passed with a warning. */
  warnedCount = 0;
  /** Reservations decided without the store. */
  withoutStoreCount = 0;
  readonly settlements: Record<SettleResult, number> = { settled: 0, late: 0, unknown: 0 };
  /** Costs of calls that ended, in the budget's unit. */
  spent = 0;
  /** Estimates of calls in flight, in the budget's unit. */
  reserved = 0;
  /** By how much costs have exceeded their estimates, in the budget's unit. */
  overshoot = 0;
  /** The highest used ratio of an account since the last `turn`. */
  #usedRatio = 0;
  #usedRatioBefore = 0;

  /** Records the used ratio of an account. */
  sawUsed(ratio: number): void {
    if (ratio > this.#usedRatio) this.#usedRatio = ratio;
  }

  /** The highest used ratio of an account in the last minute or two. */
  get usedRatio(): number {
    return Math.max(this.#usedRatio, this.#usedRatioBefore);
  }

  /** Starts another minute. */
  turn(): void {
    this.#usedRatioBefore = this.#usedRatio;
    this.#usedRatio = 0;
  }
}

/** How the usage of a call was determined. */
export const usageOrigins = [
  /** Reported in full. */
  "reported",
  /** Reported in part, or counted by bytes. */
  "partial",
  /** Not reported: the estimate counts. */
  "estimated",
  /** The upstream did not answer, or answered with an error. */
  "none",
] as const;

/** One of `usageOrigins`. */
export type UsageOrigin = (typeof usageOrigins)[number];

/** Usage of the calls of one service that this replica has settled. */
export class UsageCounts {
  readonly origins: Record<UsageOrigin, number> = {
    reported: 0,
    partial: 0,
    estimated: 0,
    none: 0,
  };
  readonly #byModel = new Map<string, Map<UsageCount, number>>();

  /** Sums of counts, by the model that the price table names; empty if it names none. */
  get byModel(): ReadonlyMap<string, ReadonlyMap<UsageCount, number>> {
    return this.#byModel;
  }

  /** @param model from a closed set */
  add(model: string, used: Usage): void {
    let sums = this.#byModel.get(model);
    if (sums === undefined) {
      sums = new Map();
      this.#byModel.set(model, sums);
    }
    for (const count of usageCounts) {
      const value = used[count];
      if (value !== undefined && value > 0) sums.set(count, (sums.get(count) ?? 0) + value);
    }
  }
}
