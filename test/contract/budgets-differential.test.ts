import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AccountLaw, ReservedEntry } from "../../src/core/budgets/account.js";
import { reservationId } from "../../src/core/budgets/reservation-id.js";
import type {
  BudgetOperation,
  BudgetStore,
  UsageRow,
} from "../../src/store/coordination/budget-store.js";
import { MemoryBudgets } from "../../src/store/coordination/memory-budgets.js";
import {
  type TestBudgets as Budgets,
  hourly,
  openClockedBudgets,
  TestBudgets,
  testAccount,
} from "../support/budgets.js";
import { enginesFor, historiesOn } from "../support/engines.js";
import { FakeClock } from "../support/fake-clock.js";
import { shareTestStore, soon } from "../support/redis-store.js";
import { metCount, propertyRuns } from "../support/seeds.js";

/** What a history asks of a store, with all that the store answers. */
type Call = (budgets: Budgets) => Promise<unknown>;

const startUs = 1_700_000_000_000_000;
const dayUs = 86_400_000_000;

const laws = fc.constantFrom<AccountLaw>(
  hourly,
  hourly,
  { kind: "drain", periodUs: 60_000_000 },
  { kind: "inFlight" },
);

/** Sometimes another law, as of a policy that has changed. */
const oddLaws = fc.constantFrom<AccountLaw>(
  {
    kind: "window",
    windows: { startUs, endUs: startUs + dayUs, nextEndUs: startUs + 2 * dayUs },
  },
  // Of a replica whose clock is ahead, or behind.
  {
    kind: "window",
    windows: {
      startUs: startUs + 3_600_000_000,
      endUs: startUs + 7_200_000_000,
      nextEndUs: startUs + 10_800_000_000,
    },
  },
  { kind: "drain", periodUs: 7_000_000 },
  { kind: "inFlight" },
);

const amounts = fc.oneof(
  { weight: 8, arbitrary: fc.nat(60) },
  { weight: 1, arbitrary: fc.constantFrom(2 ** 52, 2 ** 52 - 1, 2 ** 51 + 1) },
);
const capacities = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: 0, max: 200 }) },
  { weight: 1, arbitrary: fc.constantFrom(2 ** 52, 2 ** 52 - 7) },
);

const kindNames = ["window", "drain", "inFlight"] as const;

/** Accounts have the law that their names say, but for odd ones. */
const entry = fc
  .record({
    law: laws,
    odd: fc.option(oddLaws, { freq: 12, nil: undefined }),
    value: fc.constantFrom("a", "b", "ü/%"),
    capacity: capacities,
    estimate: amounts,
    isEnforced: fc.constantFrom(true, true, false),
    whenLost: fc.constantFrom("release" as const, "charge" as const),
  })
  .map(({ law, odd, value, ...rest }): ReservedEntry => {
    const account = testAccount(law.kind, value);
    return { ...rest, account, law: odd ?? law, onStoreFailure: "local" };
  });

const entries = fc.uniqueArray(entry, { maxLength: 4, selector: ({ account }) => account });
const holders = fc.constantFrom("a1", "a1", "b2", "c.3");
const costs = fc.array(amounts, { maxLength: 4 });

/** An operation on an id by its distance from the last one of its holder. */
type Draft = (lastNumbers: Map<string, number>) => BudgetOperation;

const operation = (holder: string): fc.Arbitrary<Draft> =>
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc
        .record({ step: fc.constantFrom(1, 1, 1, 1, 2, 0, -1), entries })
        .map(({ step, entries: own }): Draft => {
          return (lastNumbers) => {
            const number = Math.max(0, (lastNumbers.get(holder) ?? 0) + step);
            lastNumbers.set(holder, number);
            return { kind: "reserve", id: reservationId(holder, number), entries: own };
          };
        }),
    },
    {
      weight: 5,
      arbitrary: fc
        .record({
          owner: fc.oneof(fc.constant(holder), holders),
          back: fc.nat(4),
          costs,
          unreserved: fc.option(entries, { freq: 4, nil: undefined }),
        })
        .map(({ owner, back, costs: own, unreserved }): Draft => {
          return (lastNumbers) => {
            const number = Math.max(0, (lastNumbers.get(owner) ?? 0) - back);
            const settle = {
              kind: "settle",
              id: reservationId(owner, number),
              costs: own,
            } as const;
            return unreserved === undefined ? settle : { ...settle, unreserved };
          };
        }),
    },
  );

const batches = holders.chain((holder) =>
  fc.array(operation(holder), { maxLength: 8 }).map((drafts): Call => {
    return (budgets) => {
      return budgets.apply(
        drafts.map((draft) => draft(budgets.lastNumbers)),
        holder,
      );
    };
  }),
);

const beats = fc.record({ holder: holders, leaves: fc.constantFrom(false, false, true) }).map(
  ({ holder, leaves }): Call =>
    (budgets) =>
      leaves ? budgets.store.leave(holder, soon()) : budgets.renew(holder),
);

const passings = fc
  .oneof(
    { weight: 6, arbitrary: fc.integer({ min: 1, max: 3_000_000 }) },
    { weight: 3, arbitrary: fc.integer({ min: 3_000_000, max: 900_000_000 }) },
    { weight: 2, arbitrary: fc.integer({ min: 900_000_000, max: 3 * dayUs }) },
    { weight: 1, arbitrary: fc.integer({ min: -4_000_000_000, max: -1 }) },
  )
  .map((us): Call => {
    return async ({ clock }) => clock.stepEpoch(us);
  });

const refunds = fc
  .record({ id: fc.constantFrom("r1", "r2"), law: laws, amount: amounts })
  .map(({ id, law, amount }): Call => {
    return ({ store, clock }) => {
      // Redis forgets ids by its own clock.
      const ofDay = `${id}-${Math.floor(clock.epochUs() / dayUs)}`;
      const account = testAccount(law.kind, "a");
      return store.refund({ id: ofDay, account, law, amount }, soon());
    };
  });

const names = fc.constantFrom("", "a", 'ü"\u0000\n{x}', "\ud800");
const usage = fc
  .record({
    holder: holders,
    number: fc.nat(8),
    day: fc.constantFrom("2026-11-27", "2026-11-28"),
    rows: fc.array(
      fc.record({
        service: names,
        account: names,
        model: names,
        callCount: fc.nat(5),
        counts: fc.record({ inputTokens: amounts, outputTokens: amounts }, { requiredKeys: [] }),
        cost: amounts,
      }),
      { maxLength: 4 },
    ),
  })
  .map((report): Call => {
    return ({ store }) => store.addUsage(report, soon());
  });

const histories = fc.array(
  fc.oneof(
    { weight: 12, arbitrary: batches },
    { weight: 5, arbitrary: passings },
    { weight: 5, arbitrary: beats },
    { weight: 1, arbitrary: refunds },
    { weight: 1, arbitrary: usage },
  ),
  { minLength: 5, maxLength: 40 },
);

/** What there is to see of budgets. */
async function look(budgets: Budgets): Promise<unknown> {
  const lists = [];
  for (const kind of kindNames) {
    const law: AccountLaw =
      kind === "drain" ? { kind, periodUs: 60_000_000 } : { kind: "inFlight" };
    lists.push(await budgets.list(kind, kind === "window" ? hourly : law));
  }
  return lists;
}

async function usageOf(store: BudgetStore): Promise<readonly UsageRow[]> {
  const { rows, cursor } = await store.usage({ day: "2026-11-27", cursor: "" }, soon());
  expect(cursor).toBe("");
  return rows.toSorted((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1));
}

describe.each(enginesFor.scripts)("budgets over %s and in memory", (engine) => {
  const shared = shareTestStore(engine);
  const runs = propertyRuns(historiesOn(engine, 400));

  it("answer the same to any history", async () => {
    let worldCount = 0;
    const met = { refused: 0, reserved: 0, settled: 0, late: 0, expired: 0, spentBefore: 0 };
    const property = fc.asyncProperty(histories, async (history) => {
      worldCount += 1;
      const { connections } = shared.opened;
      const ownClock = new FakeClock();
      const own = new TestBudgets({ store: new MemoryBudgets(ownClock), clock: ownClock });
      const clock = new FakeClock();
      const keyPrefix = `world${worldCount}:`;
      const store = openClockedBudgets({ connections, clock, keyPrefix });
      const other = new TestBudgets({ store, clock });
      for (const call of history) {
        const [expected, answer] = [await call(own), await call(other)];
        expect(answer).toEqual(expected);
        const seen = await look(other);
        expect(seen).toEqual(await look(own));
        const text = JSON.stringify([answer, seen]);
        if (text.includes('"isReserved":false')) met.refused += 1;
        if (text.includes('"isReserved":true')) met.reserved += 1;
        if (text.includes('"result":"settled"')) met.settled += 1;
        if (text.includes('"result":"late"')) met.late += 1;
        if (typeof answer === "number" && answer > 0) met.expired += 1;
        if (/"spentBefore":[1-9]/.test(text)) met.spentBefore += 1;
      }
      expect(await usageOf(other.store)).toEqual(await usageOf(own.store));
      await shared.control.flushall();
    });
    await fc.assert(property, runs);
    for (const count of Object.values(met)) {
      if (engine === "redis") expect(count).toBeGreaterThan(metCount(3));
    }
  });
});
