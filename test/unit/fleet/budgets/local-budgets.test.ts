import { beforeEach, describe, expect, it } from "vitest";
import type { AccountLaw, ReservedEntry } from "../../../../src/core/budgets/account.js";
import { LocalBudgets } from "../../../../src/fleet/budgets/local-budgets.js";
import { testAccount, testEntry } from "../../../support/budgets.js";

const startUs = 1_700_000_000_000_000;
const hourUs = 3_600_000_000;
const drain: AccountLaw = { kind: "drain", periodUs: 100_000_000 };

let replicaCount: number;
let local: LocalBudgets;

beforeEach(() => {
  replicaCount = 2;
  local = new LocalBudgets(() => replicaCount);
});

/** The store has answered that so much is used, and let the call in. */
function learn(entry: ReservedEntry, spent: number, reserved: number): void {
  const entries = [{ spent, reserved, isOver: false }];
  local.learn([entry], { isReserved: true, entries, nowUs: startUs });
}

/** How many calls of an estimate are let in. */
function admitted(entry: ReservedEntry, nowUs = startUs): number {
  for (let count = 0; count < 1_000; count += 1) {
    if (!local.reserve([entry], nowUs).isReserved) return count;
  }
  return Number.POSITIVE_INFINITY;
}

const unit = testEntry({ estimate: 1 });

describe("LocalBudgets", () => {
  it("divides the capacity of an account that it knows nothing of", () => {
    expect(admitted(unit)).toBe(50);
    replicaCount = 3;
    expect(admitted({ ...unit, account: testAccount("other") })).toBe(33);
  });

  it("divides what was left when the store last answered", () => {
    learn(testEntry({ estimate: 10 }), 20, 30);
    // 100 less the 20 spent, the 30 of others and the 10 of its own call.
    expect(admitted(unit)).toBe(20);
  });

  it("counts its own calls once, which the store counts as well", () => {
    learn(testEntry({ estimate: 10 }), 0, 0);
    learn(testEntry({ estimate: 10 }), 0, 10);
    expect(admitted(unit)).toBe(40);
  });

  it("has what its calls cost spent, in place of their estimates", () => {
    const call = testEntry({ estimate: 40 });
    learn(call, 0, 0);
    local.settle([call], [10], { isLocal: false, nowUs: startUs });
    expect(admitted(unit)).toBe(45);
    local.settle([unit], [21], { isLocal: true, nowUs: startUs });
    // Of its 45, 44 are in flight and 21 are spent.
    expect(admitted(unit)).toBe(0);
  });

  it("forgets what was spent in a window that is over", () => {
    learn(testEntry({ estimate: 10 }), 80, 0);
    expect(admitted(unit)).toBe(5);
    local.settle([testEntry({ estimate: 5 })], [5], { isLocal: true, nowUs: startUs });
    expect(admitted(unit, startUs + hourUs)).toBe(45);
  });

  it("drains what was spent, and no more often if it is asked more often", () => {
    const entry = { ...unit, law: drain };
    learn({ ...entry, estimate: 0 }, 100, 0);
    for (let us = 0; us < 20_000_000; us += 700_000) local.reserve([entry], startUs + us);
    expect(local.reserve([entry], startUs + 20_000_000).entries[0]?.spent).toBeGreaterThan(79);
    expect(admitted(entry, startUs + 100_000_000)).toBeGreaterThan(0);
  });

  it("keeps calls in flight to its part, at least one, whatever the store said", () => {
    const entry = testEntry({ law: { kind: "inFlight" }, capacity: 5, estimate: 1 });
    learn(entry, 0, 4);
    expect(admitted(entry)).toBe(1);
    const rare = { ...entry, account: testAccount("rare"), capacity: 1 };
    expect(admitted(rare)).toBe(1);
    expect(admitted({ ...rare, account: testAccount("none"), capacity: 0 })).toBe(0);
  });

  it("refuses a call for one account without counting it at others", () => {
    const other = testEntry({ account: testAccount("other"), estimate: 1_000 });
    expect(local.reserve([unit, other], startUs).isReserved).toBe(false);
    expect(admitted(unit)).toBe(50);
  });

  it("lets calls pass that are over a budget which is not enforced, and says so", () => {
    const entry = testEntry({ estimate: 1_000, isEnforced: false });
    const result = local.reserve([entry], startUs);
    expect(result).toMatchObject({ isReserved: true, entries: [{ isOver: true }] });
  });
});
