import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Charge,
  capacityUnits,
  delayOf,
  delayUsMax,
  levelUnitsMax,
  mayDelay,
  retryAfterUs,
  unitsPerHit,
} from "../../../../src/core/limits/bucket.js";
import { decideRepeated, decideRequest } from "../../../../src/core/limits/gcra.js";
import { hitsMax } from "../../../../src/core/limits/limit.js";
import { testCharge, testKey } from "../../../support/charges.js";
import { expectPaced, type Leaving, leavings } from "../../../support/leavings.js";
import { RecordedTable } from "../../../support/recorded-table.js";
import { propertyRuns } from "../../../support/seeds.js";

const second = 1_000_000;

/** Ten hits a second, burst one, held for at most a second. */
function paced(overrides: Omit<Partial<Charge>, "key"> & { readonly key?: string } = {}): Charge {
  return testCharge({ hits: 10, periodUs: second, burst: 1, delayUs: second, ...overrides });
}

describe("capacityUnits()", () => {
  it.each([
    ["no delay", { delayUs: undefined }, 1],
    ["what drains while it may be held", { delayUs: 200_000 }, 3],
    ["a part of a hit, rounded down", { hits: 1, delayUs: 333_333 }, 1 + 349_524 / unitsPerHit],
    ["no more than the burst for a cost above it", { cost: 2 }, 1],
    ["no more than the burst for a peek", { cost: 0 }, 1],
    ["nothing where nothing drains", { hits: 0, burst: 0 }, 0],
    [
      "no more than a bucket holds",
      { hits: hitsMax, burst: hitsMax, delayUs: delayUsMax },
      levelUnitsMax / unitsPerHit,
    ],
  ])("is %s", (_, overrides, hits) => {
    const { delayUs, ...rest } = { ...paced(), ...overrides };
    const charge = delayUs === undefined ? rest : { ...rest, delayUs };
    expect(capacityUnits(charge)).toBe(hits * unitsPerHit);
  });
});

describe("a charge that may be held", () => {
  it("spreads a burst at the rate of the limit, and refuses what would be held too long", () => {
    const table = new RecordedTable();
    const holds = Array.from({ length: 13 }, () => {
      const { isDenied, results } = decideRequest([paced()], table, 0);
      const [result] = results;
      assert(result !== undefined);
      return isDenied ? "refused" : delayOf(paced(), result.bucket, 0);
    });
    const tenth = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((i) => i * 100_000);
    expect(holds).toEqual([...tenth, "refused", "refused"]);
    expect(retryAfterUs(paced(), table.get(testKey("k")) ?? { level: 0, tUs: 0 }, 0)).toBe(100_000);
  });

  it("charges nothing where another limit of the request refuses", () => {
    const table = new RecordedTable();
    decideRequest([paced({ key: "b", delayUs: 0 })], table, 0);
    const { isDenied } = decideRequest([paced(), paced({ key: "b", delayUs: 0 })], table, 0);
    expect(isDenied).toBe(true);
    expect(table.get(testKey("k"))).toBeUndefined();
  });

  it.each(["enforce", "shadow"] as const)("may be one that says %s", (role) => {
    expect(mayDelay(paced({ role }))).toBe(true);
  });

  it("is none that is stored whatever is decided, a refund, counted in windows or carried", () => {
    const windows = { startUs: 0, endUs: second, nextEndUs: 2 * second };
    const others = [
      { role: "settle" },
      { role: "quota" },
      { isRefund: true },
      { windows },
      { lastKey: testKey("last") },
    ] as const;
    expect(others.filter((fields) => mayDelay(paced(fields)))).toEqual([]);
  });
});

describe("requests that are held", () => {
  it("leave as the limit without delays would let them arrive, and refuses no other", () => {
    const property = fc.property(leavings, ({ limit, arrivals }) => {
      const table = new RecordedTable();
      let nowUs = 1_800_000_000 * second;
      const left: Leaving[] = [];
      for (const { gapUs, cost } of arrivals) {
        nowUs += gapUs;
        const charge = testCharge({ ...limit, cost });
        const before = table.get(charge.key) ?? { level: 0, tUs: nowUs };
        const { isDenied, results } = decideRequest([charge], table, nowUs);
        const [result] = results;
        assert(result !== undefined);
        left.push({ charge, nowUs, before, isDenied, after: result.bucket });
      }
      expectPaced(left);
    });
    fc.assert(property, propertyRuns(2_000));
  });

  it("are held the same when they are decided together", () => {
    const property = fc.property(
      leavings,
      fc.integer({ min: 1, max: 40 }),
      ({ limit }, multiplicity) => {
        const charge = testCharge({ ...limit, cost: 1 });
        const one = new RecordedTable();
        const grantedCount = Array.from({ length: multiplicity }, () =>
          decideRequest([charge], one, 0),
        ).filter(({ isDenied }) => !isDenied).length;
        const all = new RecordedTable();
        const together = decideRepeated({ charges: [charge], multiplicity }, all, 0);
        assert.equal(together.grantedCount, grantedCount);
        assert.deepEqual(all.get(charge.key), one.get(charge.key));
      },
    );
    fc.assert(property, propertyRuns(500));
  });
});
