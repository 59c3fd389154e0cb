import { sha256 } from "../../src/app/base/sha256.js";
import { reservationId } from "../../src/core/budgets/reservation-id.js";
import { BudgetCounts } from "../../src/decide/budget/budget-counts.js";
import { CompiledBudget } from "../../src/decide/budget/compiled-budget.js";
import type { Policy } from "../../src/policy/policy.js";
import type {
  BudgetOutcome,
  BudgetStore,
  UsageRow,
} from "../../src/store/coordination/budget-store.js";
import { RedisBudgets } from "../../src/store/redis/coordination/redis-budgets.js";
import { realClock } from "./real-clock.js";
import { openTestStore, soon } from "./redis-store.js";
import type { Stage } from "./stage.js";

/** A replica that charges the budgets of a policy in a real Redis, as no Envoy has asked it to. */
export class SpendingReplica {
  readonly #store: BudgetStore;
  readonly #budgets: ReadonlyMap<string, CompiledBudget>;
  #count = 0;

  private constructor(store: BudgetStore, { budgets }: Policy) {
    this.#store = store;
    this.#budgets = new Map(
      budgets.map((one) => [one.name, new CompiledBudget(one, new BudgetCounts(), sha256)]),
    );
  }

  static async open(stage: Stage, redisPort: number, policy: Policy): Promise<SpendingReplica> {
    const { connections } = await openTestStore({ port: redisPort });
    stage.atEnd(() => connections.close());
    const store = new RedisBudgets({
      decisions: connections.decision,
      heartbeats: connections.fleet,
      bulk: connections.background,
      keyPrefix: "headgate:",
    });
    return new SpendingReplica(store, policy);
  }

  /** Reserves for a call and, with a cost, settles it. */
  async spend(
    budget: string,
    values: readonly string[],
    { estimate, cost }: { readonly estimate: number; readonly cost?: number },
  ): Promise<readonly BudgetOutcome[]> {
    const compiled = this.#budgets.get(budget);
    if (compiled === undefined) throw new Error("no such budget");
    const nowUs = realClock.epochUs();
    const entry = {
      account: compiled.accountOf(values),
      law: compiled.lawAt(nowUs),
      capacity: compiled.capacityOf(values, { topUpOf: () => 0 }, nowUs / 1_000),
      estimate,
      isEnforced: false,
      whenLost: "release",
      onStoreFailure: "allow",
    } as const;
    this.#count += 1;
    const id = reservationId("spender", this.#count);
    const settled = cost === undefined ? [] : [{ kind: "settle", id, costs: [cost] } as const];
    const operations = [{ kind: "reserve", id, entries: [entry] } as const, ...settled];
    return this.#store.apply({ holder: "spender", leaseMs: 60_000, operations }, soon());
  }

  /** Adds rows to the usage report of today. */
  async use(...rows: readonly SpentRow[]): Promise<void> {
    this.#count += 1;
    const day = new Date(realClock.epochUs() / 1_000).toISOString().slice(0, 10);
    const named = rows.map(({ budget, values, ...row }) => {
      return { ...row, account: this.#budgets.get(budget)?.accountOf(values) ?? "" };
    });
    const report = { holder: "spender", number: this.#count, day, rows: named };
    await this.#store.addUsage(report, soon());
  }
}

/** A row of the usage report, with its account by name. */
type SpentRow = Omit<UsageRow, "account"> & {
  readonly budget: string;
  readonly values: readonly string[];
};
