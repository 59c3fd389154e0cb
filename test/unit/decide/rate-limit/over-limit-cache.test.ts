import { describe, expect, it } from "vitest";
import { type Charge, retryAfterUs, unitsPerHit } from "../../../../src/core/limits/bucket.js";
import { type KeyRecord, KeyRecords } from "../../../../src/decide/rate-limit/key-records.js";
import {
  findRecords,
  refuseFromMemory,
  rememberAnswer,
} from "../../../../src/decide/rate-limit/over-limit-cache.js";
import type { LimitCheck } from "../../../../src/decide/rate-limit/prepared-query.js";
import { testCharge } from "../../../support/charges.js";
import { testLimit } from "../../../support/policies.js";

/** Ten a second with room for ten: a hit drains in 100 ms. */
const limit = testLimit(10, { periodUs: 1_000_000 });

function askFor(record: KeyRecord, charge: Charge): LimitCheck {
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
  return refusing([askFor(record, charge)], charge, nowMs) !== undefined;
}

const believed = { sinceMs: Number.NEGATIVE_INFINITY, globalMsMax: 100 };

function refusing(asks: readonly LimitCheck[], charge: Charge, nowMs: number) {
  const prepared = { asks, isGlobal: false };
  return refuseFromMemory({ prepared, charges: [charge] }, nowMs, believed);
}

function emptyRecord(): KeyRecord {
  return { seen: undefined };
}

describe("rememberAnswer()", () => {
  it("refuses the same and dearer asks until each of them would fit", () => {
    const record = emptyRecord();
    refuse(record, costing(3), 1_000);
    expect(isRefused(record, 2, 1_299)).toBe(false);
    expect([3, 5].map((cost) => isRefused(record, cost, 1_299))).toEqual([true, true]);
    expect([3, 5].map((cost) => isRefused(record, cost, 1_300))).toEqual([false, true]);
    expect(isRefused(record, 5, 1_500)).toBe(false);
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
    expect(record?.seen).toMatchObject({ sentMs: 1_000, receivedMs: 1_001 });
    expect(refusing(asks, charge, 1_100)).toBeDefined();
    const others = [{ limit, record: undefined, charge, descriptorIndex: 0 }];
    expect(refusing(others, charge, 1_100)).toBeUndefined();
    findRecords(others, records);
    expect(refusing(others, charge, 1_100)).toBeDefined();
  });

  it("believes no refusal for longer than a second", () => {
    const record = emptyRecord();
    refuse(record, costing(11), 1_000);
    expect(isRefused(record, 11, 1_999)).toBe(true);
    expect(isRefused(record, 11, 2_000)).toBe(false);
  });

  it("refuses by the limit that is asked, whatever was asked when it learnt of the bucket", () => {
    const record = emptyRecord();
    refuse(record, costing(3), 1_000);
    const isOver = (fields: Partial<Charge>): boolean => {
      const charge = { ...costing(1), ...fields };
      return refusing([askFor(record, charge)], charge, 1_050) !== undefined;
    };
    expect(isOver({})).toBe(true);
    expect(isOver({ burst: 11 })).toBe(false);
    expect(isOver({ burst: 11, cost: 2 })).toBe(true);
    expect(isOver({ hits: 20 })).toBe(false);
    expect(isOver({ hits: 0, burst: 0 })).toBe(true);
  });

  it("tells waits by one clock, although stores have clocks of their own", () => {
    const records = [emptyRecord(), emptyRecord()] as const;
    const charge = costing(1);
    const bucket = (nowUs: number) => ({ level: 10 * unitsPerHit, tUs: nowUs });
    for (const [i, nowUs] of [0, 5_000_000].entries()) {
      const record = records[i];
      if (record === undefined) continue;
      const results = [{ isOver: true, bucket: bucket(nowUs) }];
      const answer = { results, nowUs, sentMs: 1_000, receivedMs: 1_000 };
      const asked = { asks: [askFor(record, charge)], charges: [charge] };
      rememberAnswer({ ...asked, records: new KeyRecords() }, answer);
    }
    const asks = records.map((record) => askFor(record, charge));
    const asked = { prepared: { asks, isGlobal: false }, charges: [charge, charge] };
    const refused = refuseFromMemory(asked, 1_040, believed);
    const waitsUs = refused?.results.map((result) =>
      result === undefined ? 0 : retryAfterUs(charge, result.bucket, refused.nowUs),
    );
    expect(waitsUs).toEqual([60_000, 60_000]);
  });
});
