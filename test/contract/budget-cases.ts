import { expect, it } from "vitest";
import type { AccountLaw } from "../../src/core/budgets/account.js";
import { reservationId } from "../../src/core/budgets/reservation-id.js";
import {
  accountsMax,
  budgetOperationsMax,
  expiredMax,
  lateSettlementMsMax,
  pageRowsMax,
  type UsageReport,
  type UsageRow,
} from "../../src/store/coordination/budget-store.js";
import {
  type BudgetWorld,
  hourly,
  TestBudgets,
  testAccount,
  testEntry,
} from "../support/budgets.js";
import { soon } from "../support/redis-store.js";

const hourMs = 3_600_000;
const drain: AccountLaw = { kind: "drain", periodUs: 100_000_000 };
const inFlight: AccountLaw = { kind: "inFlight" };
const team = testAccount("team");
const none = { spent: 0, reserved: 0, spentBefore: 0, lost: 0 };

/** What a ledger of budgets promises, whatever it is. */
export function describeBudgets(open: () => BudgetWorld): void {
  const openBudgets = (): TestBudgets => new TestBudgets(open());
  describeReservations(openBudgets);
  describeBatches(openBudgets);
  describeRepeats(openBudgets);
  describeLaws(openBudgets);
  describeInFlight(openBudgets);
  describeWindows(openBudgets);
  describeLeases(openBudgets);
  describeLateOnes(openBudgets);
  describeUnreserved(openBudgets);
  describeLists(openBudgets);
  describeRefunds(openBudgets);
  describeUsage(openBudgets);
}

function describeReservations(open: () => TestBudgets): void {
  it("reserves estimates up to the capacity, and settles them to what calls cost", async () => {
    const budgets = open();
    const nowUs = budgets.clock.epochUs();
    expect(await budgets.reserve(1)).toEqual({
      isReserved: true,
      entries: [{ spent: 0, reserved: 0, isOver: false }],
      nowUs,
    });
    const rest = await budgets.reserve(2, [testEntry({ estimate: 90 })]);
    expect(rest.entries).toEqual([{ spent: 0, reserved: 10, isOver: false }]);
    expect(await budgets.reserve(3, [testEntry({ estimate: 1 })])).toEqual({
      isReserved: false,
      entries: [{ spent: 0, reserved: 100, isOver: true, retryUs: hourMs * 1_000 }],
      nowUs,
    });
    expect(await budgets.settle(2, [40])).toBe("settled");
    expect(await budgets.row()).toEqual({ ...none, spent: 40, reserved: 10 });
    expect((await budgets.reserve(4, [testEntry({ estimate: 50 })])).isReserved).toBe(true);
    expect((await budgets.reserve(5, [testEntry({ estimate: 1 })])).isReserved).toBe(false);
    // Calls cost more than they were estimated to.
    expect(await budgets.settle(1, [30])).toBe("settled");
    expect(await budgets.settle(4, [60])).toBe("settled");
    expect(await budgets.row()).toEqual({ ...none, spent: 130 });
    expect((await budgets.reserve(6, [testEntry({ estimate: 0 })])).isReserved).toBe(false);
  });

  it("reserves at all accounts or at none", async () => {
    const budgets = open();
    const user = testAccount("user", "ann");
    const both = [testEntry({ capacity: 100 }), testEntry({ account: user, capacity: 15 })];
    expect((await budgets.reserve(1, both)).isReserved).toBe(true);
    expect(await budgets.reserve(2, both)).toMatchObject({
      isReserved: false,
      entries: [
        { reserved: 10, isOver: false },
        { reserved: 10, isOver: true },
      ],
    });
    expect(await budgets.row(team)).toEqual({ ...none, reserved: 10 });
    expect(await budgets.row(user)).toEqual({ ...none, reserved: 10 });
    expect(await budgets.settle(1, [7, 8])).toBe("settled");
    expect(await budgets.row(team)).toEqual({ ...none, spent: 7 });
    expect(await budgets.row(user)).toEqual({ ...none, spent: 8 });
  });

  it("reserves nevertheless where an entry that is over is not enforced", async () => {
    const budgets = open();
    const soft = testEntry({ capacity: 5, isEnforced: false });
    const other = testEntry({ account: testAccount("user", "ann") });
    expect(await budgets.reserve(1, [soft, other])).toMatchObject({
      isReserved: true,
      entries: [{ isOver: true }, { isOver: false }],
    });
    expect(await budgets.row()).toEqual({ ...none, reserved: 10 });
    expect(await budgets.settle(1, [9, 9])).toBe("settled");
    expect(await budgets.row()).toEqual({ ...none, spent: 9 });
  });
}

function describeBatches(open: () => TestBudgets): void {
  it("applies operations of a batch in order", async () => {
    const budgets = open();
    const full = [testEntry({ estimate: 100 })];
    const id = (number: number) => reservationId("a1", number);
    const outcomes = await budgets.apply([
      { kind: "reserve", id: id(1), entries: full },
      { kind: "reserve", id: id(2), entries: full },
      { kind: "settle", id: id(1), costs: [3] },
      { kind: "reserve", id: id(3), entries: [testEntry({ estimate: 97 })] },
      { kind: "settle", id: id(2), costs: [3] },
    ]);
    expect(outcomes).toMatchObject([
      { result: { isReserved: true } },
      { result: { isReserved: false } },
      { result: "settled" },
      { result: { isReserved: true } },
      { result: "unknown" },
    ]);
    expect(await budgets.row()).toEqual({ ...none, spent: 3, reserved: 97 });
    expect(await budgets.apply([])).toEqual([]);
  });

  it("does the largest batch at the largest amounts exactly", async () => {
    const budgets = open();
    const largest = 2 ** 52;
    const entries = Array.from({ length: 16 }, (_, i) => {
      const account = testAccount(`budget-${i}`, "x".repeat(128));
      return testEntry({ account, capacity: largest, estimate: largest / 128 + i });
    });
    const ids = Array.from({ length: budgetOperationsMax }, (_, i) => reservationId("a1", i));
    const outcomes = await budgets.apply(ids.map((id) => ({ kind: "reserve", id, entries })));
    const reservedCount = outcomes.filter((one) => {
      return one.kind === "reserved" && one.result.isReserved;
    }).length;
    expect(reservedCount).toBe(127);
    const account = testAccount("budget-15", "x".repeat(128));
    expect(await budgets.row(account)).toMatchObject({ reserved: 127 * (largest / 128 + 15) });
    const costs = entries.map(() => largest);
    await budgets.apply(ids.map((id) => ({ kind: "settle", id, costs })));
    expect(await budgets.row(account)).toEqual({ ...none, spent: largest });
    const over = [testEntry({ account, capacity: largest, estimate: largest, isEnforced: false })];
    for (const number of [200, 201]) await budgets.reserve(number, over);
    expect(await budgets.row(account)).toMatchObject({ reserved: largest });
    await budgets.settle(201, [0]);
    await budgets.settle(200, [0]);
    expect(await budgets.row(account)).toEqual({ ...none, spent: largest });
  });

  it("keeps accounts apart, whatever their values", async () => {
    const budgets = open();
    const values = ["", "a", "a/b", "a%2Fb", "a\nb", "\u0000", "ä😀", "{a}", "x".repeat(128)];
    const accounts = [
      ...values.map((value) => testAccount("team", value)),
      testAccount("team", "a", "b"),
      testAccount("team", "a", ""),
      testAccount("team", "x".repeat(129)),
      testAccount("team", "x".repeat(130)),
    ];
    for (const [i, account] of accounts.entries()) {
      await budgets.reserve(i, [testEntry({ account, estimate: i })]);
    }
    const rows = await Promise.all(accounts.map((account) => budgets.row(account)));
    expect(rows.map((row) => row?.reserved)).toEqual(accounts.map((_, i) => i));
    const listed = await budgets.list();
    expect(listed.map(({ account }) => account)).toEqual(accounts.toSorted());
    for (const { account } of listed) expect(account).not.toMatch(/\p{Cc}/u);
  });
}

function describeRepeats(open: () => TestBudgets): void {
  it("takes a repeated reservation for the same one", async () => {
    const budgets = open();
    const soft = testEntry({ account: testAccount("soft"), capacity: 5, isEnforced: false });
    const entries = [testEntry({ estimate: 100 }), soft];
    const first = await budgets.reserve(1, entries);
    const again = await budgets.reserve(1, entries);
    expect(again).toEqual({
      ...first,
      entries: [
        { spent: 0, reserved: 0, isOver: false },
        { spent: 0, reserved: 0, isOver: true },
      ],
    });
    expect(await budgets.row()).toEqual({ ...none, reserved: 100 });
    expect(await budgets.settle(1, [1, 1])).toBe("settled");
  });

  it("does not reserve again what others have settled, or what had no reservation", async () => {
    const budgets = open();
    await budgets.reserve(1);
    await budgets.settle(1, [5], { by: "b2" });
    expect((await budgets.reserve(1)).isReserved).toBe(false);
    await budgets.reserve(2);
    await budgets.settle(2, [0], { unreserved: [testEntry()] });
    expect((await budgets.reserve(2)).isReserved).toBe(false);
    expect(await budgets.row()).toEqual({ ...none, spent: 5 });
  });

  it("decides anew what was refused, or did not arrive before others", async () => {
    const budgets = open();
    await budgets.reserve(1, [testEntry({ estimate: 96 })]);
    expect((await budgets.reserve(2)).isReserved).toBe(false);
    await budgets.reserve(9, [testEntry({ estimate: 1 })]);
    await budgets.settle(1, [0]);
    expect((await budgets.reserve(2)).isReserved).toBe(true);
    expect((await budgets.reserve(3)).isReserved).toBe(true);
    expect(await budgets.row()).toEqual({ ...none, reserved: 21 });
    expect((await budgets.reserve(3)).isReserved).toBe(true);
    expect(await budgets.settle(3, [4])).toBe("settled");
    expect(await budgets.row()).toEqual({ ...none, spent: 4, reserved: 11 });
  });

  it("settles once, whoever asks and however often", async () => {
    const budgets = open();
    await budgets.reserve(1);
    expect(await budgets.settle(1, [5], { by: "b2" })).toBe("settled");
    expect(await budgets.settle(1, [6])).toBe("unknown");
    expect(await budgets.settle(1, [7], { by: "b2" })).toBe("unknown");
    const unreserved = [testEntry()];
    expect(await budgets.settle(1, [8], { unreserved })).toBe("unknown");
    expect(await budgets.row()).toEqual({ ...none, spent: 5 });
    expect(await budgets.settle(2, [5])).toBe("unknown");
    expect(await budgets.settle(2, [5], { holder: "c3" })).toBe("unknown");
  });

  it("charges the estimate where a settlement names no cost", async () => {
    const budgets = open();
    const user = testAccount("user", "ann");
    await budgets.reserve(1, [testEntry(), testEntry({ account: user, estimate: 20 })]);
    await budgets.settle(1, [3]);
    expect(await budgets.row(user)).toEqual({ ...none, spent: 20 });
    await budgets.reserve(2);
    await budgets.settle(2, [4, 5, 6]);
    expect(await budgets.row()).toEqual({ ...none, spent: 7 });
  });
}

function describeLaws(open: () => TestBudgets): void {
  it("drains what was spent, not what is reserved, and says how long it takes", async () => {
    const budgets = open();
    const entry = testEntry({ law: drain, capacity: 50, estimate: 40 });
    await budgets.reserve(1, [entry]);
    budgets.clock.advance(50_000);
    expect(await budgets.row(team, drain)).toEqual({ ...none, reserved: 40 });
    const open2 = await budgets.reserve(2, [entry]);
    expect(open2.entries).toEqual([{ spent: 0, reserved: 40, isOver: true }]);
    await budgets.settle(1, [45]);
    expect((await budgets.reserve(3, [entry])).entries).toEqual([
      // 35 of 50 in 100 seconds.
      { spent: 45, reserved: 0, isOver: true, retryUs: 70_000_000 },
    ]);
    budgets.clock.advance(69_999);
    expect((await budgets.reserve(4, [entry])).isReserved).toBe(false);
    budgets.clock.advance(1);
    expect((await budgets.reserve(5, [entry])).isReserved).toBe(true);
    expect(await budgets.row(team, drain)).toEqual({ ...none, spent: 10, reserved: 40 });
  });

  it("drains exactly, however often it is asked", async () => {
    const budgets = open();
    const law: AccountLaw = { kind: "drain", periodUs: 7_000_000 };
    const entry = testEntry({ law, capacity: 1_000, estimate: 0, isEnforced: false });
    await budgets.reserve(1, [entry]);
    await budgets.settle(1, [900]);
    for (let i = 2; i < 32; i += 1) {
      budgets.clock.advance(37);
      await budgets.reserve(i, [entry]);
      await budgets.settle(i, [0]);
    }
    // 30 times 37 ms: 158.57 of them.
    expect(await budgets.row(team, law)).toMatchObject({ spent: 900 - 158 });
    const vast = 2 ** 52;
    const slow: AccountLaw = { kind: "drain", periodUs: 31_536_000_000_000 };
    const large = testEntry({ account: testAccount("vast"), law: slow, capacity: vast });
    await budgets.reserve(40, [large]);
    await budgets.settle(40, [vast]);
    budgets.clock.advance(1_000);
    const drained = Number((BigInt(vast) * 1_000_000n) / 31_536_000_000_000n);
    expect(await budgets.row(large.account, slow)).toMatchObject({ spent: vast - drained });
  });
}

function describeInFlight(open: () => TestBudgets): void {
  it("counts what is in flight, and forgets what is over", async () => {
    const budgets = open();
    const entry = testEntry({ law: inFlight, capacity: 2, estimate: 1 });
    await budgets.reserve(1, [entry]);
    await budgets.reserve(2, [entry]);
    expect(await budgets.reserve(3, [entry])).toMatchObject({
      isReserved: false,
      entries: [{ spent: 0, reserved: 2, isOver: true }],
    });
    expect((await budgets.reserve(4, [entry])).entries[0]).not.toHaveProperty("retryUs");
    budgets.clock.advance(10 * hourMs);
    expect((await budgets.reserve(5, [entry])).isReserved).toBe(false);
    expect(await budgets.settle(1, [0])).toBe("settled");
    expect((await budgets.reserve(6, [entry])).isReserved).toBe(true);
    expect(await budgets.row(team, inFlight)).toEqual({ ...none, reserved: 2 });
  });

  it("says nothing of waits that do not help", async () => {
    const budgets = open();
    const tooMuch = testEntry({ capacity: 9, estimate: 10 });
    expect((await budgets.reserve(1, [tooMuch])).entries[0]).not.toHaveProperty("retryUs");
    const empty = testEntry({ law: drain, capacity: 0, estimate: 0, isEnforced: false });
    await budgets.reserve(2, [empty]);
    await budgets.settle(2, [5]);
    expect((await budgets.reserve(3, [empty])).entries).toEqual([
      { spent: 5, reserved: 0, isOver: true },
    ]);
  });
}

function describeWindows(open: () => TestBudgets): void {
  it("settles into the window of the reservation", async () => {
    const budgets = open();
    await budgets.reserve(1, [testEntry({ estimate: 60 })]);
    await budgets.reserve(2, [testEntry({ estimate: 40 })]);
    budgets.clock.advance(hourMs);
    // Whoever has settled before anybody reserved in the new window finds the old one.
    expect(await budgets.settle(1, [70])).toBe("settled");
    expect(await budgets.row()).toEqual({ ...none, spentBefore: 70 });
    expect((await budgets.reserve(3, [testEntry({ estimate: 100 })])).isReserved).toBe(true);
    expect(await budgets.settle(2, [50])).toBe("settled");
    expect(await budgets.row()).toEqual({ ...none, reserved: 100, spentBefore: 120 });
    budgets.clock.advance(hourMs);
    expect((await budgets.reserve(4, [testEntry({ estimate: 100 })])).isReserved).toBe(true);
    expect(await budgets.settle(3, [90])).toBe("settled");
    expect(await budgets.row()).toEqual({ ...none, reserved: 100, spentBefore: 90 });
    budgets.clock.advance(2 * hourMs);
    await budgets.reserve(5);
    // Its window is over for longer than one.
    expect(await budgets.settle(4, [80])).toBe("settled");
    expect(await budgets.row()).toEqual({ ...none, reserved: 10 });
  });

  it("forgets nothing where the clock steps back", async () => {
    const budgets = open();
    await budgets.reserve(1, [testEntry({ estimate: 60 })]);
    await budgets.settle(1, [60]);
    budgets.clock.advance(hourMs);
    await budgets.reserve(2, [testEntry({ estimate: 70 })]);
    await budgets.settle(2, [70]);
    budgets.clock.stepEpoch(-10_000_000);
    const entries = [{ spent: 70, reserved: 0, isOver: true, retryUs: 3_610_000_000 }];
    expect(await budgets.reserve(3, [testEntry({ estimate: 40 })])).toMatchObject({ entries });
    await budgets.reserve(4, [testEntry({ estimate: 20 })]);
    budgets.clock.stepEpoch(10_000_000);
    expect(await budgets.row()).toEqual({ ...none, spent: 70, reserved: 20, spentBefore: 60 });
    const drained = testEntry({ account: testAccount("drained"), law: drain });
    await budgets.reserve(5, [drained]);
    await budgets.settle(5, [50]);
    budgets.clock.stepEpoch(-10_000_000);
    expect(await budgets.row(drained.account, drain)).toMatchObject({ spent: 50 });
  });

  it("keeps what was spent where a budget gets another period", async () => {
    const budgets = open();
    await budgets.reserve(1);
    await budgets.settle(1, [60]);
    if (hourly.kind !== "window") throw new Error("it is a window");
    const { startUs } = hourly.windows;
    const dayUs = 24 * hourMs * 1_000;
    const windows = { startUs, endUs: startUs + dayUs, nextEndUs: startUs + 2 * dayUs };
    const daily: AccountLaw = { kind: "window", windows };
    const longer = await budgets.reserve(2, [testEntry({ law: daily, estimate: 41 })]);
    expect(longer.entries).toEqual([{ spent: 60, reserved: 0, isOver: true, retryUs: dayUs }]);
    await budgets.reserve(3, [testEntry({ law: daily })]);
    budgets.clock.advance(2 * hourMs);
    expect(await budgets.row(team, daily)).toEqual({ ...none, spent: 60, reserved: 10 });
    expect(await budgets.row(team, drain)).toEqual({ ...none, spent: 60, reserved: 10 });
    expect(await budgets.row()).toEqual({ ...none, spent: 60, reserved: 10 });
  });
}

function describeLeases(open: () => TestBudgets): void {
  it("releases or charges what a lost holder had reserved", async () => {
    const budgets = open();
    const charged = testEntry({ account: testAccount("charged"), whenLost: "charge" });
    const flying = testEntry({ account: testAccount("flying"), law: inFlight });
    await budgets.reserve(1, [testEntry(), charged, flying]);
    budgets.clock.advance(4_999);
    expect(await budgets.renew("b2")).toBe(0);
    expect(await budgets.row()).toEqual({ ...none, reserved: 10 });
    budgets.clock.advance(1);
    expect(await budgets.renew("b2")).toBe(1);
    expect(await budgets.row()).toEqual({ ...none, lost: 10 });
    expect(await budgets.row(charged.account)).toEqual({ ...none, spent: 10 });
    expect(await budgets.row(flying.account, inFlight)).toMatchObject({ reserved: 0 });
    expect(await budgets.renew("b2")).toBe(0);
  });

  it("keeps what a holder has reserved that renews, or sends batches", async () => {
    const budgets = open();
    await budgets.reserve(1);
    await budgets.reserve(1, [testEntry()], "b2");
    for (let i = 0; i < 4; i += 1) {
      budgets.clock.advance(3_000);
      await budgets.apply([]);
      expect(await budgets.renew("b2")).toBe(0);
    }
    expect(await budgets.row()).toEqual({ ...none, reserved: 20 });
    await budgets.store.leave("b2", soon());
    await budgets.renew();
    expect(await budgets.row()).toEqual({ ...none, reserved: 10, lost: 10 });
  });

  it("expires so many reservations at once, and the others next", async () => {
    const budgets = open();
    const count = 2 * expiredMax + 5;
    for (let i = 0; i < count; i += 1) await budgets.reserve(i, [testEntry({ estimate: 0 })]);
    budgets.clock.advance(5_000);
    const counts = [];
    for (let i = 0; i < 4; i += 1) counts.push(await budgets.renew("b2"));
    expect(counts).toEqual([expiredMax, expiredMax, 5, 0]);
  });

  it("ends leases that a clock has left far in the future", async () => {
    const budgets = open();
    await budgets.reserve(1);
    budgets.clock.stepEpoch(-2 * hourMs * 1_000);
    await budgets.renew("b2");
    budgets.clock.advance(600_000);
    expect(await budgets.renew("b2")).toBe(1);
  });
}

function describeLateOnes(open: () => TestBudgets): void {
  it("charges a late settlement once, as the correction of what was lost", async () => {
    const budgets = open();
    const charged = testEntry({ account: testAccount("charged"), whenLost: "charge" });
    await budgets.reserve(1, [testEntry(), charged]);
    await budgets.reserve(2, [testEntry(), charged]);
    budgets.clock.advance(5_000);
    expect(await budgets.renew("b2")).toBe(2);
    expect(await budgets.settle(1, [7, 4], { by: "b2" })).toBe("late");
    expect(await budgets.row()).toEqual({ ...none, spent: 7, lost: 10 });
    expect(await budgets.row(charged.account)).toEqual({ ...none, spent: 14 });
    expect(await budgets.settle(1, [7, 4], { by: "b2" })).toBe("unknown");
    expect(await budgets.settle(1, [7, 4])).toBe("unknown");
    budgets.clock.advance(lateSettlementMsMax - 1);
    expect(await budgets.settle(2, [8, 30])).toBe("late");
    expect(await budgets.row()).toMatchObject({ spentBefore: 15 });
    expect(await budgets.row(charged.account)).toMatchObject({ spentBefore: 34 });
  });

  it("charges nothing that comes too late", async () => {
    const budgets = open();
    await budgets.reserve(1);
    await budgets.store.leave("a1", soon());
    await budgets.renew("b2");
    budgets.clock.advance(lateSettlementMsMax);
    expect(await budgets.settle(1, [7])).toBe("unknown");
    expect(await budgets.row()).toEqual(none);
  });

  it("takes the reservation of a holder that was lost for made when it is repeated", async () => {
    const budgets = open();
    await budgets.reserve(1);
    budgets.clock.advance(5_000);
    await budgets.renew("b2");
    expect(await budgets.reserve(1)).toMatchObject({ isReserved: true });
    expect(await budgets.row()).toEqual({ ...none, lost: 10 });
    expect(await budgets.settle(1, [7])).toBe("late");
  });
}

function describeUnreserved(open: () => TestBudgets): void {
  const unreserved = [testEntry()];

  it("charges a call once that was let in without a reservation", async () => {
    const budgets = open();
    expect(await budgets.settle(1, [130], { unreserved })).toBe("settled");
    expect(await budgets.row()).toEqual({ ...none, spent: 130 });
    for (const passedMs of [0, 61_000, 61_000, hourMs - 200_000]) {
      budgets.clock.advance(passedMs);
      await budgets.apply([]);
      expect(await budgets.settle(1, [130], { unreserved })).toBe("unknown");
      expect(await budgets.settle(1, [130])).toBe("unknown");
    }
    expect(await budgets.row()).toEqual({ ...none, spent: 130 });
    expect((await budgets.reserve(1)).isReserved).toBe(false);
    expect((await budgets.reserve(2, [testEntry({ capacity: 200 })])).isReserved).toBe(true);
  });

  it("settles the reservation where there is one after all", async () => {
    const budgets = open();
    await budgets.reserve(1);
    expect(await budgets.settle(1, [4], { unreserved })).toBe("settled");
    expect(await budgets.settle(1, [4], { unreserved })).toBe("unknown");
    expect(await budgets.row()).toEqual({ ...none, spent: 4 });
    await budgets.reserve(2);
    expect(await budgets.settle(2, [5], { by: "b2" })).toBe("settled");
    expect(await budgets.settle(2, [5], { unreserved })).toBe("unknown");
    await budgets.reserve(3);
    budgets.clock.advance(5_000);
    await budgets.renew("b2");
    expect(await budgets.settle(3, [6], { unreserved })).toBe("late");
    expect(await budgets.settle(3, [6], { unreserved })).toBe("unknown");
    expect(await budgets.row()).toEqual({ ...none, spent: 15 });
  });

  it("charges a call that was refused, and was let in nevertheless", async () => {
    const budgets = open();
    const entries = [testEntry({ estimate: 101 })];
    await budgets.reserve(1, entries);
    await budgets.reserve(2);
    expect(await budgets.settle(1, [50], { unreserved: entries })).toBe("settled");
    expect(await budgets.row()).toEqual({ ...none, spent: 50, reserved: 10 });
  });
}

function describeLists(open: () => TestBudgets): void {
  it("lists the accounts of a budget by pages, each once", async () => {
    const budgets = open();
    expect(await budgets.list()).toEqual([]);
    const count = 2 * pageRowsMax + 3;
    const accounts = Array.from({ length: count }, (_, i) => testAccount("team", `user ${i}`));
    for (let from = 0; from < count; from += 16) {
      const entries = accounts.slice(from, from + 16).map((account, i) => {
        return testEntry({ account, estimate: from + i, capacity: 1_000 });
      });
      await budgets.reserve(from, entries);
    }
    await budgets.reserve(count, [testEntry({ account: testAccount("teams", "x") })]);
    const rows = await budgets.list();
    expect(rows.map(({ account }) => account)).toEqual(accounts.toSorted());
    for (const { account, reserved } of rows) expect(reserved).toBe(accounts.indexOf(account));
    expect(await budgets.row(testAccount("team", "nobody"))).toBeUndefined();
  });

  it("forgets accounts that nobody uses", async () => {
    const budgets = open();
    await budgets.reserve(1, [testEntry({ account: testAccount("team", "old") })]);
    await budgets.settle(1, [5]);
    budgets.clock.advance(48 * hourMs);
    expect(await budgets.list()).toEqual([]);
    await budgets.reserve(2, [testEntry({ account: testAccount("team", "new") })]);
    expect((await budgets.list()).map(({ account }) => account)).toEqual(["team/new"]);
  });

  it("makes so many accounts of a budget, and fails for more", { timeout: 120_000 }, async () => {
    const budgets = open();
    const entryOf = (i: number) => testEntry({ account: testAccount("team", `${i}`), estimate: 0 });
    let made = 0;
    for (let number = 0; made < accountsMax; ) {
      // Few at once: a store that is silent for a second, as on a busy machine, counts as gone.
      const operations = Array.from({ length: 16 }, () => {
        const length = Math.min(16, accountsMax - made);
        const entries = Array.from({ length }, (_, i) => entryOf(made + i));
        made += length;
        number += 1;
        return { kind: "reserve" as const, id: reservationId("a1", number), entries };
      });
      await budgets.apply(operations);
    }
    const full = [{ kind: "failed", code: "STORE_FULL" }];
    const id = reservationId("b2", 1);
    const other = testEntry({ account: testAccount("other") });
    const beyond = [other, entryOf(accountsMax)];
    expect(await budgets.apply([{ kind: "reserve", id, entries: beyond }], "b2")).toEqual(full);
    const charge = { kind: "settle", id, costs: [1], unreserved: beyond } as const;
    expect(await budgets.apply([charge], "b2")).toEqual(full);
    expect(await budgets.row(other.account)).toBeUndefined();
    expect((await budgets.reserve(2, [other, entryOf(5)], "b2")).isReserved).toBe(true);
    budgets.clock.advance(48 * hourMs);
    for (let i = 3; i < 5; i += 1) {
      expect((await budgets.reserve(i, [entryOf(accountsMax + i)], "b2")).isReserved).toBe(true);
    }
  });
}

function describeRefunds(open: () => TestBudgets): void {
  it("gives back at most what was spent, once for each id", async () => {
    const budgets = open();
    await budgets.reserve(1);
    await budgets.settle(1, [60]);
    const refund = (id: string, amount: number, account = team) => {
      return budgets.store.refund({ id, account, law: hourly, amount }, soon());
    };
    expect(await refund("r1", 25)).toBe(25);
    expect(await refund("r1", 25)).toBe(25);
    expect(await budgets.row()).toEqual({ ...none, spent: 35 });
    expect(await refund("r2", 1_000)).toBe(35);
    expect(await refund("r3", 1_000)).toBe(0);
    expect(await refund("r4", 5, testAccount("nobody"))).toBe(0);
    expect(await budgets.row()).toEqual(none);
    await budgets.reserve(2);
    await budgets.settle(2, [60]);
    budgets.clock.advance(hourMs);
    // The window before is closed.
    expect(await refund("r5", 5)).toBe(0);
    expect(await budgets.row()).toEqual({ ...none, spentBefore: 60 });
  });
}

function describeUsage(open: () => TestBudgets): void {
  const day = "2026-11-27";
  const row = (fields: Partial<UsageRow> = {}): UsageRow => {
    const names = { service: "llm", account: "research, gpt", model: "gpt" };
    return { ...names, callCount: 1, counts: { inputTokens: 10 }, cost: 100, ...fields };
  };
  const usageOf = async (budgets: TestBudgets, of = day): Promise<readonly UsageRow[]> => {
    const rows: UsageRow[] = [];
    let cursor = "";
    do {
      const page = await budgets.store.usage({ day: of, cursor }, soon());
      rows.push(...page.rows);
      cursor = page.cursor;
    } while (cursor !== "");
    return rows;
  };

  it("adds up reports, each number of a holder once", async () => {
    const budgets = open();
    const add = (report: Omit<UsageReport, "day">, of = day) => {
      return budgets.store.addUsage({ ...report, day: of }, soon());
    };
    const dear = row({ counts: { outputTokens: 5 }, callCount: 2, cost: 2 ** 52 });
    const others = [row({ counts: {} }), row({ model: "other", counts: {} })];
    await add({ holder: "a1", number: 1, rows: [row()] });
    await add({ holder: "a1", number: 1, rows: [row()] });
    await add({ holder: "b2", number: 1, rows: [dear] });
    await add({ holder: "a1", number: 2, rows: others });
    await add({ holder: "a1", number: 3, rows: [row()] }, "2026-11-28");
    const sum = { callCount: 4, counts: { inputTokens: 10, outputTokens: 5 }, cost: 2 ** 52 };
    const rows = await usageOf(budgets);
    expect(rows).toHaveLength(2);
    expect(rows).toEqual(expect.arrayContaining([row(sum), row({ model: "other", counts: {} })]));
    expect(await usageOf(budgets, "2026-11-28")).toEqual([row()]);
    expect(await usageOf(budgets, "2026-11-29")).toEqual([]);
  });

  it("keeps names as they are, whatever they are", async () => {
    const budgets = open();
    const models = ["", "\u0000", "\n", '"', "\\", "ä😀", "\ud800", "x".repeat(512)];
    const rows = models.map((model) => row({ model, account: model }));
    await budgets.store.addUsage({ holder: "a1", number: 1, day, rows }, soon());
    const found = await usageOf(budgets);
    expect(found.map(({ model }) => model).toSorted()).toEqual(models.toSorted());
  });

  it("sums what is beyond the rows of a day in one without an account", async () => {
    const budgets = open();
    let number = 0;
    for (let from = 0; from < 50_400; from += 400) {
      const rows = Array.from({ length: 400 }, (_, i) => row({ account: `user ${from + i}` }));
      number += 1;
      await budgets.store.addUsage({ holder: "a1", number, day, rows }, soon());
    }
    await budgets.store.addUsage(
      { holder: "b2", number, day, rows: [row({ account: "user 3" })] },
      soon(),
    );
    const rows = await usageOf(budgets);
    expect(rows).toHaveLength(50_001);
    expect(new Set(rows.map(({ account }) => account)).size).toBe(50_001);
    expect(rows.find(({ account }) => account === "user 3")?.callCount).toBe(2);
    const rest = rows.find(({ account }) => account === "");
    expect(rest).toEqual(
      row({ account: "", model: "", callCount: 400, counts: { inputTokens: 4_000 }, cost: 40_000 }),
    );
  }, 120_000);
}
