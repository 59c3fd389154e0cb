import { describe, expect, it } from "vitest";
import type { ReservedEntry, SettleResult } from "../../src/core/budgets/account.js";
import type { ReservationId, ReserveAnswer } from "../../src/core/budgets/budget-ledger.js";
import { StoreBudgetLedger } from "../../src/fleet/budgets/store-budget-ledger.js";
import type { BudgetStore } from "../../src/store/coordination/budget-store.js";
import { MemoryBudgets } from "../../src/store/coordination/memory-budgets.js";
import {
  hourly,
  openClockedBudgets,
  TestBudgets,
  testAccount,
  testEntry,
} from "../support/budgets.js";
import { enginesFor } from "../support/engines.js";
import { FakeClock } from "../support/fake-clock.js";
import { realClock, realRandom } from "../support/real-clock.js";
import { shareTestStore } from "../support/redis-store.js";

/** A replica's ledger over a store, by real time; only its leases and the like are the test's. */
function openLedger(store: BudgetStore): StoreBudgetLedger {
  return new StoreBudgetLedger({
    ...{ store, clock: realClock, random: realRandom, replicaCount: () => 1 },
    reserveTimeoutMs: 20_000,
  });
}

function reserve(
  ledger: StoreBudgetLedger,
  ...entries: readonly ReservedEntry[]
): Promise<ReserveAnswer> {
  return new Promise((resolve) => ledger.reserve(entries, Number.POSITIVE_INFINITY, resolve));
}

function settle(
  ledger: StoreBudgetLedger,
  id: ReservationId,
  ...costs: readonly number[]
): Promise<SettleResult> {
  return new Promise((resolve) => ledger.settle({ id, costs }, resolve));
}

function idOf({ id }: ReserveAnswer): ReservationId {
  if (id === undefined) throw new Error("the call was refused");
  return id;
}

function describeLedger(open: (clock: FakeClock) => BudgetStore): void {
  it("reserves all of a call's accounts or none, and settles what it cost, once", async () => {
    const clock = new FakeClock();
    const store = open(clock);
    const budgets = new TestBudgets({ store, clock });
    const [ledger, other] = [openLedger(store), openLedger(store)];
    const user = testEntry({ account: testAccount("user", "ann"), capacity: 12 });
    const first = idOf(await reserve(ledger, testEntry(), user));
    expect((await reserve(other, testEntry(), user)).id).toBeUndefined();
    expect(await budgets.row()).toMatchObject({ spent: 0, reserved: 10 });
    expect(await settle(other, first, 25, 3)).toBe("settled");
    expect(await settle(ledger, first, 25, 3)).toBe("unknown");
    expect(await budgets.row()).toMatchObject({ spent: 25, reserved: 0 });
    expect(await budgets.row(user.account)).toMatchObject({ spent: 3, reserved: 0 });
    await Promise.all([ledger.close(), other.close()]);
  });

  it("answers each of many calls of a turn, in batches", async () => {
    const clock = new FakeClock();
    const ledger = openLedger(open(clock));
    const answers = await Promise.all(
      Array.from({ length: 300 }, () => reserve(ledger, testEntry({ estimate: 1 }))),
    );
    const ids = answers.flatMap(({ id }) => id ?? []);
    expect(ids).toHaveLength(100);
    expect(ledger.counts.batchCount).toBe(3);
    const results = await Promise.all(ids.map((id) => settle(ledger, id, 1)));
    expect(new Set(results)).toEqual(new Set(["settled"]));
    await ledger.close();
  });
}

function describeLostCalls(open: (clock: FakeClock) => BudgetStore): void {
  it("settles late what its lease has lost", async () => {
    const clock = new FakeClock();
    const store = open(clock);
    const budgets = new TestBudgets({ store, clock });
    const ledger = openLedger(store);
    const id = idOf(await reserve(ledger, testEntry()));
    clock.advance(31_000);
    expect(await budgets.renew("another")).toBe(1);
    expect(await budgets.row()).toMatchObject({ reserved: 0, lost: 10 });
    expect(await settle(ledger, id, 4)).toBe("late");
    expect(await budgets.row()).toMatchObject({ spent: 4, reserved: 0, lost: 0 });
    await ledger.close();
  });

  it("releases what is open when it closes", async () => {
    const clock = new FakeClock();
    const store = open(clock);
    const ledger = openLedger(store);
    await reserve(ledger, testEntry());
    await ledger.close();
    expect(await new TestBudgets({ store, clock }).row()).toMatchObject({ spent: 0, reserved: 0 });
  });

  it("charges once what may be reserved, however late its settlement is repeated", async () => {
    const clock = new FakeClock();
    const store = open(clock);
    const budgets = new TestBudgets({ store, clock });
    const unreserved = [testEntry()];
    await budgets.reserve(1, unreserved);
    expect(await budgets.settle(1, [7], { unreserved })).toBe("settled");
    expect(await budgets.settle(2, [5], { unreserved })).toBe("settled");
    for (let minute = 0; minute < 50; minute += 1) {
      clock.advance(60_000);
      await budgets.renew();
      await budgets.settle(100 + minute, []);
    }
    expect(await budgets.settle(1, [7], { unreserved })).toBe("unknown");
    expect(await budgets.settle(2, [5], { unreserved })).toBe("unknown");
    expect(await budgets.row(testAccount("team"), hourly)).toMatchObject({ spent: 12 });
  });
}

describe("a ledger of budgets in memory", () => {
  const open = (clock: FakeClock): BudgetStore => new MemoryBudgets(clock);
  describeLedger(open);
  describeLostCalls(open);
});

describe.each(enginesFor.behaviour)("a ledger of budgets over %s", (engine) => {
  const shared = shareTestStore(engine);
  let worldCount = 0;
  const open = (clock: FakeClock): BudgetStore => {
    worldCount += 1;
    const { connections } = shared.opened;
    return openClockedBudgets({ connections, clock, keyPrefix: `world${worldCount}:` });
  };
  describeLedger(open);
  describeLostCalls(open);
});
