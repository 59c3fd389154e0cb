import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Bucket, type Charge, unitsPerHit } from "../../../../src/core/limits/bucket.js";
import { type BucketTable, decideRequest } from "../../../../src/core/limits/gcra.js";
import {
  apportion,
  borrowingWindow,
  creditCharge,
  isBorrowing,
  lendableHits,
  lendingCharge,
  regionalBurst,
  regionalCharge,
  wantedHits,
} from "../../../../src/core/limits/lending.js";
import { drainTimeUsMax } from "../../../../src/core/limits/limit.js";
import { testCharge } from "../../../support/charges.js";
import { testLimit } from "../../../support/policies.js";
import { propertyRuns } from "../../../support/seeds.js";

const minute = { startUs: 60_000_000, endUs: 120_000_000, nextEndUs: 180_000_000 };

function full(hits: number, tUs = 0): Bucket {
  return { level: hits * unitsPerHit, tUs };
}

/** A table of one bucket. */
function tableOf(bucket: Bucket | undefined): BucketTable & { bucket: Bucket | undefined } {
  return {
    bucket,
    get() {
      return this.bucket;
    },
    set(_key, changed) {
      this.bucket = changed;
    },
    delete() {
      this.bucket = undefined;
    },
  };
}

describe("regionalBurst()", () => {
  it.each([
    { burst: 11, count: 3, parts: [4, 4, 3] },
    { burst: 9, count: 3, parts: [3, 3, 3] },
    { burst: 2, count: 3, parts: [1, 1, 1] },
    { burst: 0, count: 3, parts: [0, 0, 0] },
    { burst: 7, count: 1, parts: [7] },
  ])("divides $burst among $count regions", ({ burst, count, parts }) => {
    expect(parts.map((_, index) => regionalBurst(burst, { index, count }))).toEqual(parts);
  });

  it("adds up to the burst, or to a hit for each region", () => {
    const property = fc.property(
      fc.nat(4_294_967_295),
      fc.integer({ min: 1, max: 16 }),
      (burst, count) => {
        let sum = 0;
        for (let index = 0; index < count; index += 1)
          sum += regionalBurst(burst, { index, count });
        expect(sum).toBe(burst === 0 ? 0 : Math.max(burst, count));
      },
    );
    fc.assert(property, propertyRuns(200));
  });
});

describe("regionalCharge()", () => {
  const second = { index: 1, count: 3 };

  it("divides the rate as a longer period", () => {
    const charge = regionalCharge(testCharge({ hits: 10, burst: 11 }), second);
    expect(charge).toMatchObject({ hits: 10, periodUs: 180_000_000, burst: 4 });
  });

  it("keeps the length of windows", () => {
    const charge = regionalCharge(testCharge({ burst: 10, windows: minute }), second);
    expect(charge).toMatchObject({ periodUs: 60_000_000, burst: 3, windows: minute });
  });

  it("denies everything where the whole limit does", () => {
    const nothing = testCharge({ hits: 0, burst: 0 });
    expect(regionalCharge(nothing, second)).toBe(nothing);
  });

  it("divides hits where the period would exceed ten years", () => {
    const charge = regionalCharge(testCharge({ hits: 12, periodUs: drainTimeUsMax }), second);
    expect(charge).toMatchObject({ hits: 4, periodUs: drainTimeUsMax });
  });
});

describe("isBorrowing()", () => {
  it.each([
    { what: "is over", level: 0, fields: {}, isOver: true, expected: true },
    { what: "is more than half full", level: 6, fields: {}, isOver: false, expected: true },
    { what: "is half full", level: 5, fields: {}, isOver: false, expected: false },
    { what: "gives back", level: 9, fields: { isRefund: true }, isOver: false, expected: false },
  ])("says $expected where a charge $what", ({ level, fields, isOver, expected }) => {
    const result = { isOver, bucket: full(level) };
    expect(isBorrowing({ charge: testCharge(fields), result })).toBe(expected);
  });
});

describe("wantedHits()", () => {
  const charge = testCharge({ hits: 1, burst: 20 });

  it.each([
    { level: 16, refused: 5, transit: 0, replicas: 2, wanted: 13 },
    { level: 16, refused: 0, transit: 0, replicas: 1, wanted: 16 },
    { level: 10, refused: 0, transit: 0, replicas: 1, wanted: 0 },
    { level: 10, refused: 1, transit: 0, replicas: 10, wanted: 2 },
    { level: 16, refused: 500, transit: 0, replicas: 1, wanted: 16 },
    { level: 40, refused: 500, transit: 0, replicas: 1, wanted: 20 },
    { level: 16, refused: 500, transit: 12, replicas: 1, wanted: 4 },
    { level: 16, refused: 0, transit: 20, replicas: 1, wanted: 0 },
  ])("wants $wanted at level $level after $refused were refused", (row) => {
    const demand = {
      refusedHits: row.refused,
      inTransitHits: row.transit,
      bucket: full(row.level),
    };
    expect(wantedHits({ charge, ...demand }, row.replicas, 0)).toBe(row.wanted);
  });

  it("counts what has drained since", () => {
    const demand = { refusedHits: 9, inTransitHits: 0, bucket: full(16) };
    expect(wantedHits({ charge, ...demand }, 1, 4 * 60_000_000)).toBe(12);
  });
});

describe("lendingCharge()", () => {
  it("takes at most half of the other region's burst", () => {
    const limit = testLimit(10, { periodUs: 60_000_000, burst: 31 });
    const borrower = testCharge({ hits: 10, periodUs: 180_000_000, burst: 10, cost: 4 });
    const lending = lendingCharge(borrower, limit, { index: 0, count: 3 });
    const taken = { cost: 1, role: "enforce", burst: 5, periodUs: 180_000_000, hits: 10 };
    expect(lending).toMatchObject({ ...taken, key: borrower.key });
  });
});

describe("lendableHits()", () => {
  const lending = testCharge({ hits: 10, periodUs: 10_000_000, burst: 5 });
  const seen = { bucket: full(4, 1_000_000), nowUs: 1_000_000, receivedMs: 500 };

  it.each([
    { nowMs: 500, hits: 1 },
    { nowMs: 2_500, hits: 3 },
    { nowMs: 60_000, hits: 5 },
  ])("expects $hits at $nowMs ms", ({ nowMs, hits }) => {
    expect(lendableHits(lending, seen, { nowMs, window: undefined })).toBe(hits);
  });

  it("expects nothing in another window", () => {
    const windowed = { ...lending, windows: minute };
    const inWindow = { bucket: full(4, 61_000_000), nowUs: 119_000_000, receivedMs: 500 };
    const hitsAt = (nowMs: number): number =>
      lendableHits(windowed, inWindow, { nowMs, window: minute });
    expect([hitsAt(500), hitsAt(1_499), hitsAt(1_500)]).toEqual([1, 1, 0]);
  });
});

describe("apportion()", () => {
  it.each([
    { hits: 10, lendable: [3, 0, 1], parts: [3, 0, 1] },
    { hits: 2, lendable: [3, 0, 1], parts: [1, 0, 1] },
    { hits: 2, lendable: [5, 5, 5], parts: [0, 1, 1] },
    { hits: 5, lendable: [0, 0], parts: [0, 0] },
    { hits: 0, lendable: [1], parts: [0] },
  ])("divides $hits", ({ hits, lendable, parts }) => {
    expect(apportion(hits, lendable)).toEqual(parts);
  });
});

describe("borrowingWindow()", () => {
  it.each([
    { nowUs: 59_999_999, startUs: undefined },
    { nowUs: 60_000_000, startUs: 60_000_000 },
    { nowUs: 120_000_000, startUs: 120_000_000 },
    { nowUs: 180_000_000, startUs: undefined },
  ])("starts at $startUs when the store's time is $nowUs", ({ nowUs, startUs }) => {
    expect(borrowingWindow(minute, nowUs)?.startUs).toBe(startUs);
  });
});

describe("creditCharge()", () => {
  function credited(charge: Charge, bucket: Bucket | undefined, nowUs: number) {
    const table = tableOf(bucket);
    decideRequest([creditCharge(charge, 4, charge.windows)], table, nowUs);
    return table.bucket;
  }

  it("takes hits out of a bucket, and never more than it holds", () => {
    const charge = testCharge({ hits: 1, burst: 10 });
    expect(credited(charge, full(9), 0)).toEqual(full(5));
    expect(credited(charge, full(3), 0)).toBeUndefined();
    expect(credited(charge, undefined, 0)).toBeUndefined();
  });

  it.each([
    { what: "in its window", tUs: 61_000_000, nowUs: 119_999_999, hits: 5 },
    {
      what: "in the next one, which was not charged",
      tUs: 61_000_000,
      nowUs: 120_000_000,
      hits: 9,
    },
    { what: "in the next one, which was charged", tUs: 121_000_000, nowUs: 121_000_001, hits: 9 },
    { what: "hours later", tUs: 9_000_000_000, nowUs: 9_000_000_900, hits: 9 },
  ])("leaves $hits hits of a window limit $what", ({ tUs, nowUs, hits }) => {
    const charge = testCharge({ burst: 10, windows: minute });
    expect(credited(charge, full(9, tUs), nowUs)?.level).toBe(hits * unitsPerHit);
  });
});
