import { describe, expect, it } from "vitest";
import { unitsPerHit } from "../../../../src/core/limits/bucket.js";
import type { GlobalDemand } from "../../../../src/core/limits/lending.js";
import {
  borrowedKeysMax,
  DemandTable,
  demandKeysMax,
  keptKeysMax,
} from "../../../../src/fleet/regions/demand-table.js";
import { testCharge } from "../../../support/charges.js";
import { testLimit } from "../../../support/policies.js";

const limit = testLimit(30, { spread: "global" });

function demandOf(
  key: string,
  { level = 10, isOver = true, cost = 1, nowUs = 0 } = {},
): GlobalDemand {
  const charge = testCharge({ key, cost });
  return {
    limit,
    charge,
    result: { isOver, bucket: { level: level * unitsPerHit, tUs: 0 } },
    nowUs,
  };
}

describe("DemandTable", () => {
  it("sums what was refused, and keeps the latest bucket", () => {
    const table = new DemandTable();
    table.note(demandOf("k", { cost: 2, nowUs: 5 }), 0);
    table.note(demandOf("k", { level: 9, isOver: false, cost: 3, nowUs: 9 }), 1);
    // Replies of two connections overtake each other.
    table.note(demandOf("k", { level: 1, cost: 0, nowUs: 7 }), 2);
    const [one] = table.hottest(2);
    expect(one).toMatchObject({ refusedHits: 3, nowUs: 9, bucket: { level: 9 * unitsPerHit } });
  });

  it("forgets what needs nothing, and what had no demand for a while", () => {
    const table = new DemandTable();
    table.note(demandOf("calm", { level: 5, isOver: false }), 0);
    expect(table.keyCount).toBe(0);
    table.note(demandOf("k"), 0);
    table.note(demandOf("lent"), 0);
    const lent = table.hottest(500).find(({ charge }) => charge.key === "lent");
    if (lent !== undefined) lent.inTransitHits = 3;
    expect(table.hottest(501).map(({ charge }) => charge.key)).toEqual(["lent"]);
  });

  it("keeps the hottest of too many keys, and counts the others", () => {
    const table = new DemandTable();
    for (let i = 0; i < demandKeysMax + 10; i += 1) {
      table.note(demandOf(`k${i}`, { cost: i === 700 ? 9 : 1 }), 0);
    }
    expect(table.keyCount).toBe(demandKeysMax);
    expect(table.droppedKeyCount).toBe(10);
    const hottest = table.hottest(0);
    expect(hottest).toHaveLength(borrowedKeysMax);
    expect(hottest[0]?.charge.key).toBe("k700");
    expect(table.keyCount).toBe(keptKeysMax);
    expect(table.droppedKeyCount).toBe(10 + demandKeysMax - borrowedKeysMax);
  });

  it("borrows for all of too many keys in turn, where all have as much demand", () => {
    const table = new DemandTable();
    const keys = Array.from({ length: 3 * borrowedKeysMax }, (_, i) => `k${i}`);
    const borrowed = new Set<string>();
    for (let round = 0; round < 6; round += 1) {
      for (const key of keys) table.note(demandOf(key), round);
      for (const { charge } of table.hottest(round)) borrowed.add(charge.key);
    }
    expect(borrowed.size).toBe(keys.length);
  });

  it("forgets what others have when the limit changes", () => {
    const table = new DemandTable();
    table.note(demandOf("k"), 0);
    const [one] = table.hottest(0);
    if (one !== undefined)
      one.lenders[1] = { bucket: { level: 0, tUs: 0 }, nowUs: 0, receivedMs: 0 };
    table.note({ ...demandOf("k"), limit: testLimit(60, { spread: "global" }) }, 0);
    expect(one?.lenders).toEqual([]);
  });
});
