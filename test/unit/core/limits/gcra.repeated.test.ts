import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  bucketTimeToFullUs,
  type Charge,
  costHitsMax,
  levelAt,
  retryAfterUs,
  unitsPerHit,
} from "../../../../src/core/limits/bucket.js";
import {
  decideRepeated,
  decideRequest,
  isRepeatable,
  multiplicityMax,
  type RepeatedResult,
  type RequestResult,
} from "../../../../src/core/limits/gcra.js";
import { hitsMax } from "../../../../src/core/limits/limit.js";
import { testCharge, testKey } from "../../../support/charges.js";
import { type HistoryLimit, historyLimits } from "../../../support/gcra-histories.js";
import { RecordedTable } from "../../../support/recorded-table.js";
import { metCount, propertyRuns } from "../../../support/seeds.js";

const nowUs = 1_800_000_000_000_000;

/** What each of the requests in a row is told, by asking them one by one. */
function decideInTurn(
  charges: readonly Charge[],
  multiplicity: number,
  table: RecordedTable,
): readonly RequestResult[] {
  return Array.from({ length: multiplicity }, () => decideRequest(charges, table, nowUs));
}

/** What each of the requests in a row is told, as it follows from the answer to all of them. */
function presented(
  charges: readonly Charge[],
  multiplicity: number,
  { grantedCount, results }: RepeatedResult,
): readonly RequestResult[] {
  return Array.from({ length: multiplicity }, (_, j) => {
    if (j >= grantedCount) return { isDenied: true, results };
    const laterCount = grantedCount - (j + 1);
    return {
      isDenied: false,
      results: results.map(({ bucket }, i) => {
        const laterHits = laterCount * (charges[i]?.cost ?? 0);
        const level = bucket.level - laterHits * unitsPerHit;
        return { isOver: false, bucket: { level, tUs: bucket.tUs } };
      }),
    };
  });
}

/**
 * What callers are told of an answer. Buckets themselves may differ where an impossible one had
 * drained: the first single request deletes it, and the next meets none.
 */
function reported(charges: readonly Charge[], { isDenied, results }: RequestResult): unknown {
  const each = charges.map((charge, i) => {
    const found = results[i];
    if (found === undefined) throw new Error("a charge has no result");
    const { isOver, bucket } = found;
    return {
      isOver,
      levelNow: levelAt(charge, bucket, nowUs),
      retryAfterUs: retryAfterUs(charge, bucket, nowUs),
      timeToFullUs: bucketTimeToFullUs(charge, bucket, nowUs),
    };
  });
  return { isDenied, each };
}

/** A limit, what its bucket holds, and what is asked of it. */
interface Meeting {
  readonly limit: HistoryLimit;
  /** How full the bucket is, as a part of the burst; above 1 after an edit of the limit. */
  readonly usedRatio: number;
  /** How long ago it was that full; negative where the clock stepped back. */
  readonly agoUs: number;
  /** How often the cost fits into the empty bucket, about. */
  readonly timesFitting: number;
}

const meetings: fc.Arbitrary<Meeting> = fc.record({
  limit: historyLimits,
  usedRatio: fc.constantFrom(0, 0, 0.3, 0.7, 0.99, 1, 1.5),
  agoUs: fc.constantFrom(0, 1, 3_333, 1_000_000, 86_400_000_000, -1, -7_200_000_000),
  timesFitting: fc.constantFrom(0.5, 1, 2, 3.3, 7, 20, 1_000),
});

function chargeOf({ limit, timesFitting }: Meeting, i: number): Charge {
  const cost = Math.min(costHitsMax, Math.max(1, Math.floor(limit.burst / timesFitting)));
  const key = testKey(`key ${i}`);
  return { ...limit, key, cost, role: "enforce", isRefund: false };
}

function tableOf(list: readonly Meeting[]): RecordedTable {
  const table = new RecordedTable();
  list.forEach(({ limit, usedRatio, agoUs }, i) => {
    const level = Math.floor(limit.burst * usedRatio * unitsPerHit);
    if (level > 0) table.buckets.set(testKey(`key ${i}`), { level, tUs: nowUs - agoUs });
  });
  return table;
}

/** How often a charge fits, by whole numbers without limits. */
function fittingCount(charge: Charge, table: RecordedTable): bigint {
  const [peeked] = decideRequest([{ ...charge, cost: 0 }], table.copy(), nowUs).results;
  if (peeked === undefined) throw new Error("a charge has no result");
  const levelNow = levelAt(charge, peeked.bucket, nowUs);
  const free = BigInt(charge.burst) * BigInt(unitsPerHit) - BigInt(levelNow);
  return free < 0n ? 0n : free / (BigInt(charge.cost) * BigInt(unitsPerHit));
}

const meetingLists = fc.array(meetings, { minLength: 1, maxLength: 4 });

describe("decideRepeated()", () => {
  it("tells and stores what as many single requests in a row do", () => {
    let partlyGrantedCount = 0;
    const property = fc.property(meetingLists, fc.integer({ min: 1, max: 25 }), (list, m) => {
      const charges = list.map(chargeOf);
      const inTurn = tableOf(list);
      const atOnce = inTurn.copy();
      const singles = decideInTurn(charges, m, inTurn);
      const result = decideRepeated({ charges, multiplicity: m }, atOnce, nowUs);
      const each = presented(charges, m, result).map((one) => reported(charges, one));
      expect(each).toEqual(singles.map((one) => reported(charges, one)));
      expect(atOnce.buckets).toEqual(inTurn.buckets);
      if (result.grantedCount > 0 && result.grantedCount < m) partlyGrantedCount += 1;
    });
    fc.assert(property, propertyRuns(300));
    expect(partlyGrantedCount).toBeGreaterThan(metCount(20));
  });

  it("grants in one step as many as fit, up to the most that may be asked", () => {
    const counts = fc.oneof(fc.integer({ min: 2, max: multiplicityMax }), fc.constant(hitsMax));
    const property = fc.property(meetingLists, counts, (list, multiplicity) => {
      const charges = list.map(chargeOf);
      const table = tableOf(list);
      const fitting = charges.map((charge) => fittingCount(charge, table));
      const { grantedCount } = decideRepeated({ charges, multiplicity }, table, nowUs);
      const wanted = [BigInt(multiplicity), ...fitting].reduce((a, b) => (a < b ? a : b));
      expect(BigInt(grantedCount)).toBe(wanted);
    });
    fc.assert(property, propertyRuns(200));
  });

  it.each([
    { used: 0, cost: 1, multiplicity: 10, granted: 10, level: 10, isOver: false },
    { used: 0, cost: 1, multiplicity: 11, granted: 10, level: 10, isOver: true },
    { used: 3, cost: 2, multiplicity: 5, granted: 3, level: 9, isOver: true },
    { used: 10, cost: 1, multiplicity: 2, granted: 0, level: 10, isOver: true },
    { used: 0, cost: 11, multiplicity: 3, granted: 0, level: 0, isOver: true },
    { used: 4, cost: 1, multiplicity: multiplicityMax, granted: 6, level: 10, isOver: true },
  ])("grants $granted of $multiplicity at cost $cost over $used used", (row) => {
    const table = new RecordedTable();
    decideRequest([testCharge({ cost: row.used })], table, nowUs);
    table.takeWrites();
    const request = { charges: [testCharge({ cost: row.cost })], multiplicity: row.multiplicity };
    const { grantedCount, results } = decideRepeated(request, table, nowUs);
    expect(grantedCount).toBe(row.granted);
    const bucket = { level: row.level * unitsPerHit, tUs: nowUs };
    expect(results).toEqual([{ isOver: row.isOver, bucket }]);
    expect(table.takeWrites()).toHaveLength(row.granted > 0 ? 1 : 0);
  });

  it("takes every hit of the largest burst at once", () => {
    const most = { hits: hitsMax, periodUs: 1_000_000, burst: hitsMax };
    const table = new RecordedTable();
    const request = { charges: [testCharge(most)], multiplicity: multiplicityMax };
    const answers = [1, 2].map(() => decideRepeated(request, table, nowUs).grantedCount);
    expect(answers).toEqual([multiplicityMax, 0]);
    expect(table.get(testKey("k"))?.level).toBe(hitsMax * unitsPerHit);
  });

  it("grants what the tightest of several limits lets through, and says which it was", () => {
    const table = new RecordedTable();
    const charges = [
      testCharge({ key: "wide", burst: 50 }),
      testCharge({ key: "tight", burst: 4 }),
    ];
    const { grantedCount, results } = decideRepeated({ charges, multiplicity: 9 }, table, nowUs);
    expect(grantedCount).toBe(4);
    expect(results.map((result) => result.isOver)).toEqual([false, true]);
    expect(results.map((result) => result.bucket.level / unitsPerHit)).toEqual([4, 4]);
  });
});

describe("isRepeatable()", () => {
  const plain = testCharge();
  it.each([
    ["an enforced hit", [plain], true],
    ["two on keys of their own", [plain, testCharge({ key: "b" })], true],
    ["a limit that blocks", [testCharge({ hits: 0, burst: 0 })], true],
    ["a key twice", [plain, testCharge({ cost: 2 })], false],
    ["a peek", [testCharge({ cost: 0 })], false],
    ["a refund", [testCharge({ isRefund: true })], false],
    ["a shadow charge among others", [plain, testCharge({ key: "b", role: "shadow" })], false],
    ["a quota charge", [testCharge({ role: "quota" })], false],
    ["a settle charge", [testCharge({ role: "settle" })], false],
    ["a bucket that never drains", [testCharge({ hits: 0 })], false],
  ] as const)("%s: %#", (_name, charges, isSo) => {
    expect(isRepeatable(charges)).toBe(isSo);
  });
});
