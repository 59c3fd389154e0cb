import { describe, expect, it } from "vitest";
import { type Charge, unitsPerHit } from "../../../src/core/bucket.js";
import { type KeyRecord, KeyRecords, keyRefusalsMax } from "../../../src/decide/key-records.js";
import type { PreparedAsk } from "../../../src/decide/prepared-query.js";
import { findRecords, refuseFromMemory, rememberAnswer } from "../../../src/decide/refusals.js";
import { testCharge } from "../../support/charges.js";
import { testLimit } from "../../support/policies.js";

/** Ten a second with room for ten: a hit drains in 100 ms. */
const limit = testLimit(10, { periodUs: 1_000_000 });

function askFor(record: KeyRecord, charge: Charge): PreparedAsk {
  return { limit, record, charge, descriptorIndex: 0 };
}

function costing(cost: number): Charge {
  return testCharge({ periodUs: 1_000_000, cost });
}

/** The store refused the charge at that time, its bucket being full. */
function refuse(record: KeyRecord, charge: Charge, sentMs: number): void {
  const bucket = { level: 10 * unitsPerHit, tUs: 0 };
  const results = [{ isOver: true, bucket }];
  const answer = { results, nowUs: 0, sentMs, receivedMs: sentMs + 1 };
  const asks = [askFor(record, charge)];
  rememberAnswer({ asks, charges: [charge], records: new KeyRecords() }, answer);
}

function isRefused(record: KeyRecord, cost: number, nowMs: number): boolean {
  const charge = costing(cost);
  return refuseFromMemory([askFor(record, charge)], [charge], nowMs) !== undefined;
}

function emptyRecord(): KeyRecord {
  return { seen: undefined, refusals: [] };
}

describe("rememberAnswer()", () => {
  it("refuses the same and dearer asks until the cheapest of them would fit", () => {
    const record = emptyRecord();
    refuse(record, costing(3), 1_000);
    expect(isRefused(record, 2, 1_299)).toBe(false);
    expect([3, 5].map((cost) => isRefused(record, cost, 1_299))).toEqual([true, true]);
    expect([3, 5].map((cost) => isRefused(record, cost, 1_300))).toEqual([false, false]);
  });

  // A dear ask pushed out what was known of a cheap one, which then went to the store again, and
  // the other way round.
  it("keeps the refusals of a cheap and of a dear ask, in whatever order they come", () => {
    for (const costs of [
      [1, 5],
      [5, 1],
    ]) {
      const record = emptyRecord();
      for (const cost of costs) refuse(record, costing(cost), 1_000);
      expect([1, 5].map((cost) => isRefused(record, cost, 1_099))).toEqual([true, true]);
      expect([1, 5].map((cost) => isRefused(record, cost, 1_499))).toEqual([false, true]);
    }
  });

  it("makes a record for a key that had none, and the next query finds it", () => {
    const records = new KeyRecords();
    const charge = costing(3);
    const asks = [{ limit, record: undefined, charge, descriptorIndex: 0 }];
    const results = [{ isOver: true, bucket: { level: 10 * unitsPerHit, tUs: 0 } }];
    const answer = { results, nowUs: 0, sentMs: 1_000, receivedMs: 1_001 };
    rememberAnswer({ asks, charges: [charge], records }, answer);
    const record = records.find(charge.key);
    expect(record?.refusals).toEqual([{ cost: 3, untilMs: 1_300 }]);
    expect(refuseFromMemory(asks, [charge], 1_100)).toBeDefined();
    const others = [{ limit, record: undefined, charge, descriptorIndex: 0 }];
    expect(refuseFromMemory(others, [charge], 1_100)).toBeUndefined();
    findRecords(others, records);
    expect(refuseFromMemory(others, [charge], 1_100)).toBeDefined();
  });

  it("believes no refusal for longer than a second", () => {
    const record = emptyRecord();
    refuse(record, costing(11), 1_000);
    expect(isRefused(record, 11, 1_999)).toBe(true);
    expect(isRefused(record, 11, 2_000)).toBe(false);
  });

  it("holds a few refusals of a key and forgets the oldest", () => {
    const record = emptyRecord();
    for (let cost = 1; cost <= keyRefusalsMax + 1; cost += 1) refuse(record, costing(cost), 1_000);
    expect(record.refusals).toHaveLength(keyRefusalsMax);
    expect([1, 2].map((cost) => isRefused(record, cost, 1_050))).toEqual([false, true]);
  });
});
