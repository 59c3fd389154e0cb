import { amountMax } from "./account.js";

/** An amount that an operator adds to one budget until a given time. */
export interface TopUp {
  /** Identifies its record, among all budgets. */
  readonly id: string;
  readonly budget: string;
  /** The values of the budget's `per`, in order. `*` matches any value. */
  readonly values: readonly string[];
  /** In the budget's unit, 1 to `amountMax`. */
  readonly amount: number;
  /** Milliseconds since 1970, exclusive. */
  readonly untilMs: number;
  readonly reason: string;
  /** The operator who added it. */
  readonly actor: string;
}

/** The top-ups that this replica knows. */
export interface TopUps {
  /** Returns the amount that is added to an account's capacity now, 0 to `amountMax`. */
  topUpOf(budget: string, values: readonly string[], nowMs: number): number;
}

/** Top-ups at one point in time, indexed by budget and values. Immutable. */
export class TopUpTable implements TopUps {
  readonly #budgets: ReadonlyMap<string, BudgetTopUps>;

  constructor(topUps: Iterable<TopUp>) {
    const budgets = new Map<string, BudgetTopUps>();
    for (const topUp of topUps) {
      const own: BudgetTopUps = budgets.get(topUp.budget) ?? { exact: new Map(), patterns: [] };
      budgets.set(topUp.budget, own);
      if (topUp.values.includes("*")) own.patterns.push(topUp);
      else {
        const key = exactKey(topUp.values);
        own.exact.set(key, [...(own.exact.get(key) ?? []), topUp]);
      }
    }
    this.#budgets = budgets;
  }

  topUpOf(budget: string, values: readonly string[], nowMs: number): number {
    const own = this.#budgets.get(budget);
    if (own === undefined) return 0;
    let sum = 0;
    for (const { amount, untilMs } of own.exact.get(exactKey(values)) ?? []) {
      if (nowMs < untilMs) sum += amount;
    }
    for (const topUp of own.patterns) {
      if (nowMs < topUp.untilMs && matches(topUp.values, values)) sum += topUp.amount;
    }
    return Math.min(sum, amountMax);
  }
}

interface BudgetTopUps {
  readonly exact: Map<string, readonly TopUp[]>;
  readonly patterns: TopUp[];
}

function exactKey(values: readonly string[]): string {
  return JSON.stringify(values);
}

function matches(pattern: readonly string[], values: readonly string[]): boolean {
  return (
    pattern.length === values.length &&
    pattern.every((text, i) => text === "*" || text === values[i])
  );
}
