import type {
  AccountKey,
  AccountLaw,
  ReservedEntry,
  ReserveResult,
  SettleResult,
} from "../../src/core/budgets/account.js";
import { accountKey } from "../../src/core/budgets/account-key.js";
import { reservationId } from "../../src/core/budgets/reservation-id.js";
import type {
  AccountRow,
  BudgetOperation,
  BudgetOutcome,
  BudgetStore,
} from "../../src/store/coordination/budget-store.js";
import type { RedisConnections } from "../../src/store/redis/connections.js";
import { RedisBudgets } from "../../src/store/redis/coordination/redis-budgets.js";
import { ClockedConnection } from "./clocked-connection.js";
import type { FakeClock } from "./fake-clock.js";
import { soon } from "./redis-store.js";

/** A ledger of budgets that goes by a clock of the test. */
export interface BudgetWorld {
  readonly store: BudgetStore;
  readonly clock: FakeClock;
}

/** Budgets in a real Redis that go by a clock of the test. */
export function openClockedBudgets({
  connections,
  clock,
  keyPrefix = "headgate:",
}: {
  readonly connections: Pick<RedisConnections, "decision" | "fleet" | "background">;
  readonly clock: FakeClock;
  readonly keyPrefix?: string;
}): RedisBudgets {
  return new RedisBudgets({
    decisions: new ClockedConnection(connections.decision, clock),
    heartbeats: new ClockedConnection(connections.fleet, clock),
    bulk: new ClockedConnection(connections.background, clock),
    keyPrefix,
  });
}

/** The account of some values of a test's budget. */
export function testAccount(budget: string, ...values: readonly string[]): AccountKey {
  return accountKey(budget, values, (text) => String(text.length).padStart(64, "0"));
}

const startUs = 1_700_000_000_000_000;
const hourUs = 3_600_000_000;

/** Windows of an hour, of which the first begins when a fake clock does. */
export const hourly: AccountLaw = {
  kind: "window",
  windows: { startUs, endUs: startUs + hourUs, nextEndUs: startUs + 2 * hourUs },
};

/** An entry of a budget of 100 an hour; an estimate of 10. */
export function testEntry(fields: Partial<ReservedEntry> = {}): ReservedEntry {
  return {
    account: testAccount("team"),
    law: hourly,
    capacity: 100,
    estimate: 10,
    isEnforced: true,
    whenLost: "release",
    onStoreFailure: "local",
    ...fields,
  };
}

/** A ledger of budgets, with calls that say only what a test is about. */
export class TestBudgets {
  readonly store: BudgetStore;
  readonly clock: FakeClock;
  readonly leaseMs = 5_000;
  /** For tests that draw the numbers of ids: the last one of each holder. */
  readonly lastNumbers = new Map<string, number>();

  constructor({ store, clock }: BudgetWorld) {
    this.store = store;
    this.clock = clock;
  }

  apply(operations: readonly BudgetOperation[], holder = "a1"): Promise<readonly BudgetOutcome[]> {
    return this.store.apply({ holder, leaseMs: this.leaseMs, operations }, soon());
  }

  /** Reserves under the id of that number. */
  async reserve(
    number: number,
    entries: readonly ReservedEntry[] = [testEntry()],
    holder = "a1",
  ): Promise<ReserveResult> {
    const id = reservationId(holder, number);
    const [outcome] = await this.apply([{ kind: "reserve", id, entries }], holder);
    if (outcome?.kind !== "reserved") throw new Error(`not decided: ${JSON.stringify(outcome)}`);
    return outcome.result;
  }

  /** Settles the id of that number, as any replica does. */
  async settle(
    number: number,
    costs: readonly number[],
    fields: {
      readonly holder?: string;
      readonly by?: string;
      readonly unreserved?: readonly ReservedEntry[];
    } = {},
  ): Promise<SettleResult> {
    const { holder = "a1", by = holder, unreserved } = fields;
    const id = reservationId(holder, number);
    const [outcome] = await this.apply(
      [{ kind: "settle", id, costs, ...(unreserved === undefined ? {} : { unreserved }) }],
      by,
    );
    if (outcome?.kind !== "settled") throw new Error(`not decided: ${JSON.stringify(outcome)}`);
    return outcome.result;
  }

  /** What there is of an account; undefined: nothing. */
  async row(
    account: AccountKey = testAccount("team"),
    law: AccountLaw = hourly,
  ): Promise<Omit<AccountRow, "account"> | undefined> {
    const [row] = await this.store.read([{ account, law }], soon());
    if (row === undefined) return undefined;
    const { account: _, ...amounts } = row;
    return amounts;
  }

  async renew(holder = "a1"): Promise<number> {
    return (await this.store.renew(holder, this.leaseMs, soon())).expiredCount;
  }

  /** All accounts of a budget, by key. */
  async list(budget = "team", law: AccountLaw = hourly): Promise<readonly AccountRow[]> {
    const rows: AccountRow[] = [];
    let cursor = "";
    do {
      const page = await this.store.list({ budget, law, cursor }, soon());
      rows.push(...page.rows);
      cursor = page.cursor;
    } while (cursor !== "");
    return rows.toSorted((one, other) => (one.account < other.account ? -1 : 1));
  }
}
