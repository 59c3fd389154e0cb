import { describe, expect, it } from "vitest";
import {
  bucketTimeToFullUs,
  type Charge,
  costHitsMax,
  remainingHits,
  retryAfterUs,
  unitsPerHit,
} from "../../../../src/core/limits/bucket.js";
import { decideRequest, type RequestResult } from "../../../../src/core/limits/gcra.js";
import { hitsMax } from "../../../../src/core/limits/limit.js";
import { testCharge, testKey } from "../../../support/charges.js";
import { RecordedTable } from "../../../support/recorded-table.js";

const secondUs = 1_000_000;
const minuteUs = 60 * secondUs;
const yearUs = 31_536_000 * secondUs;

/** What is used of a key, in hits. */
function levelHits(table: RecordedTable, key: string): number {
  return (table.get(testKey(key))?.level ?? 0) / unitsPerHit;
}

function isOverOf({ results }: RequestResult): readonly boolean[] {
  return results.map((result) => result.isOver);
}

/** Hits that each result's bucket leaves. */
function remainingOf(charges: readonly Charge[], result: RequestResult, nowUs: number): number[] {
  return charges.map((charge, i) => {
    const bucket = result.results[i]?.bucket;
    if (bucket === undefined) throw new Error("a charge has no result");
    return remainingHits(charge, bucket, nowUs);
  });
}

type Limit = Pick<Charge, "hits" | "periodUs" | "burst">;

/** One ask of a story: when, how many hits, and what the caller is told. */
type Row = readonly [
  atSeconds: number,
  cost: number,
  answer: "ok" | "over",
  remaining: number,
  retrySeconds: number | "never",
  fullSeconds: number,
];

const stories: readonly (readonly [name: string, limit: Limit, rows: readonly Row[]])[] = [
  [
    "10 a minute, burst 10",
    { hits: 10, periodUs: minuteUs, burst: 10 },
    [
      [0, 1, "ok", 9, 0, 6],
      [0, 9, "ok", 0, 54, 60],
      [0, 1, "over", 0, 6, 60],
      [5.999999, 1, "over", 0, 0.000001, 54.000001],
      [6, 1, "ok", 0, 6, 60],
      [9, 0, "ok", 0, 0, 57],
      [9, 3, "over", 0, 15, 57],
      [36, 3, "ok", 2, 6, 48],
      [100, 11, "over", 10, "never", 0],
      [100, 10, "ok", 0, 60, 60],
    ],
  ],
  [
    "1 a second, burst 5",
    { hits: 1, periodUs: secondUs, burst: 5 },
    [
      [0, 5, "ok", 0, 5, 5],
      [1, 2, "over", 1, 1, 4],
      [1, 1, "ok", 0, 1, 5],
      [3, 2, "ok", 0, 2, 5],
      [3.5, 1, "over", 0, 0.5, 4.5],
      [4.5, 1, "ok", 0, 0.5, 4.5],
      [60, 5, "ok", 0, 5, 5],
    ],
  ],
  [
    "5 in 10 seconds, burst 5",
    { hits: 5, periodUs: 10 * secondUs, burst: 5 },
    [
      [0, 4, "ok", 1, 6, 8],
      [0, 2, "over", 1, 2, 8],
      [1, 1, "ok", 0, 1, 9],
      [2, 1, "ok", 0, 2, 10],
      [3.999999, 1, "over", 0, 0.000001, 8.000001],
      [12, 5, "ok", 0, 10, 10],
    ],
  ],
  [
    "1 a year, burst 1",
    { hits: 1, periodUs: yearUs, burst: 1 },
    [
      [0, 1, "ok", 0, 31_536_000, 31_536_000],
      [1, 1, "over", 0, 31_535_999, 31_535_999],
      [31_535_999.999999, 1, "over", 0, 0.000001, 0.000001],
      [31_536_000, 1, "ok", 0, 31_536_000, 31_536_000],
    ],
  ],
  [
    "2^32 - 1 a second, burst 2^32 - 1",
    { hits: hitsMax, periodUs: secondUs, burst: hitsMax },
    [
      [0, 1, "ok", hitsMax - 1, 0, 0.000001],
      [0, hitsMax - 1, "ok", 0, 1, 1],
      [0, 1, "over", 0, 0.000001, 1],
      [0.000001, 4_295, "over", 4_294, 0.000001, 0.999999],
      [0.000001, 4_294, "ok", 0, 0.000001, 1],
      [1.000001, hitsMax, "ok", 0, 1, 1],
    ],
  ],
];

describe("decideRequest()", () => {
  it.each(stories)("tells the story of %s", (_name, limit, rows) => {
    const table = new RecordedTable();
    const reported = rows.map(([atSeconds, cost]): Row => {
      const nowUs = Math.round(atSeconds * secondUs);
      const charge = testCharge({ ...limit, cost });
      const [found] = decideRequest([charge], table, nowUs).results;
      if (found === undefined) throw new Error("a charge has no result");
      const retryUs = retryAfterUs(charge, found.bucket, nowUs);
      return [
        atSeconds,
        cost,
        found.isOver ? "over" : "ok",
        remainingHits(charge, found.bucket, nowUs),
        retryUs === undefined ? "never" : retryUs / secondUs,
        (bucketTimeToFullUs(charge, found.bucket, nowUs) ?? 0) / secondUs,
      ];
    });
    expect(reported).toEqual(rows);
  });

  it("denies a charge larger than the burst, without storing it", () => {
    const table = new RecordedTable();
    for (const cost of [11, hitsMax, costHitsMax]) {
      expect(decideRequest([testCharge({ cost })], table, 0).isDenied).toBe(true);
    }
    expect(table.takeWrites()).toEqual([]);
  });

  it("leaves the table alone when it refuses, and when nothing is asked", () => {
    const table = new RecordedTable();
    decideRequest([testCharge({ cost: 10 })], table, 0);
    const before = new Map(table.buckets);
    table.takeWrites();
    decideRequest([testCharge({ cost: 1 })], table, 1_234_567);
    decideRequest([testCharge({ cost: 0 })], table, 2_345_678);
    decideRequest([testCharge({ cost: 0, peekExhausted: true })], table, 2_345_679);
    decideRequest([testCharge({ cost: 0, key: "other" })], table, 2_345_679);
    decideRequest([], table, 3_000_000);
    expect(table.takeWrites()).toEqual([]);
    expect(table.buckets).toEqual(before);
  });

  it("blocks without state where the burst and the hits are 0", () => {
    const table = new RecordedTable();
    const blocked = testCharge({ hits: 0, burst: 0 });
    for (const role of ["enforce", "settle", "quota"] as const) {
      const result = decideRequest([{ ...blocked, role }], table, 5);
      expect(result.isDenied).toBe(true);
      const [found] = result.results;
      if (found === undefined) throw new Error("a charge has no result");
      expect(remainingHits(blocked, found.bucket, 5)).toBe(0);
      expect(retryAfterUs(blocked, found.bucket, 5)).toBeUndefined();
      expect(bucketTimeToFullUs(blocked, found.bucket, 5)).toBe(0);
    }
    expect(table.takeWrites()).toEqual([]);
  });

  it("peeks: over in debt, or by choice when no whole hit is left", () => {
    const table = new RecordedTable();
    const peek = testCharge({ role: "settle", cost: 0 });
    const strict = { ...peek, peekExhausted: true };
    const isOver = (charge: Charge, nowUs: number): boolean =>
      decideRequest([charge], table, nowUs).isDenied;
    decideRequest([{ ...peek, cost: 10 }], table, 0);
    expect([isOver(peek, 0), isOver(strict, 0)]).toEqual([false, true]);
    expect([isOver(strict, 5_999_999), isOver(strict, 6_000_000)]).toEqual([true, false]);
    decideRequest([{ ...peek, cost: 1 }], table, 0);
    expect([isOver(peek, 0), isOver(peek, 5_999_999)]).toEqual([true, true]);
    expect([isOver(peek, 6_000_000), isOver(strict, 6_000_000)]).toEqual([false, true]);
  });
});

describe("decideRequest() over several charges", () => {
  it("charges nobody when one is over, wherever it stands", () => {
    const full = testCharge({ key: "full" });
    for (const at of [0, 1, 2]) {
      const table = new RecordedTable();
      decideRequest([{ ...full, cost: 10 }], table, 0);
      table.takeWrites();
      const others = [testCharge({ key: "a" }), testCharge({ key: "b", role: "shadow" })];
      const charges = others.toSpliced(at, 0, full);
      const result = decideRequest(charges, table, 0);
      expect(result.isDenied).toBe(true);
      expect(isOverOf(result)).toEqual([false, false].toSpliced(at, 0, true));
      expect(remainingOf(charges, result, 0)).toEqual([10, 10].toSpliced(at, 0, 0));
      expect(table.takeWrites()).toEqual([]);
    }
  });

  it("counts the same key twice, in order", () => {
    const table = new RecordedTable();
    const twice = [testCharge({ cost: 4 }), testCharge({ cost: 6 })];
    const result = decideRequest(twice, table, 0);
    expect(remainingOf(twice, result, 0)).toEqual([6, 0]);
    expect(levelHits(table, "k")).toBe(10);
    expect(table.takeWrites().length).toBe(1);
  });

  it("denies the second of two that fit only one by one", () => {
    const table = new RecordedTable();
    const twice = [testCharge({ cost: 6 }), testCharge({ cost: 6 })];
    const result = decideRequest(twice, table, 0);
    expect(isOverOf(result)).toEqual([false, true]);
    // The first says what it leaves: all. The second says how far both together are from fitting.
    expect(remainingOf(twice, result, 0)).toEqual([10, 4]);
    expect(table.takeWrites()).toEqual([]);
  });

  it("never denies for a shadow limit, and charges it only when it fits", () => {
    const table = new RecordedTable();
    const charges = [
      testCharge({ key: "shadow", role: "shadow", burst: 2 }),
      testCharge({ key: "real" }),
    ];
    const answers = [0, 0, 0].map((nowUs) => decideRequest(charges, table, nowUs));
    expect(answers.map((answer) => answer.isDenied)).toEqual([false, false, false]);
    expect(answers.map(isOverOf)).toEqual([
      [false, false],
      [false, false],
      [true, false],
    ]);
    expect([levelHits(table, "shadow"), levelHits(table, "real")]).toEqual([2, 3]);
  });

  it.each([
    { roles: ["quota", "quota"], over: [true, false], isDenied: false, levels: [10, 1] },
    { roles: ["quota", "quota"], over: [false, true], isDenied: false, levels: [1, 10] },
    { roles: ["quota", "quota"], over: [true, true], isDenied: true, levels: [10, 10] },
    { roles: ["quota", "enforce"], over: [true, false], isDenied: true, levels: [10, 0] },
    { roles: ["quota", "enforce"], over: [false, true], isDenied: true, levels: [0, 10] },
    { roles: ["quota", "shadow"], over: [false, true], isDenied: false, levels: [1, 10] },
    { roles: ["quota", "settle"], over: [false, true], isDenied: true, levels: [0, 11] },
    { roles: ["quota", "settle"], over: [true, false], isDenied: true, levels: [10, 1] },
    { roles: ["shadow", "shadow"], over: [true, true], isDenied: false, levels: [10, 10] },
  ] as const)("of roles $roles over $over: denied $isDenied, levels $levels", (row) => {
    const table = new RecordedTable();
    const charges = row.roles.map((role, i) => testCharge({ key: `k${i}`, role }));
    const full = charges.filter((_, i) => row.over[i]);
    for (const charge of full) decideRequest([{ ...charge, cost: 10 }], table, 0);
    const result = decideRequest(charges, table, 0);
    expect(isOverOf(result)).toEqual(row.over);
    expect(result.isDenied).toBe(row.isDenied);
    expect([levelHits(table, "k0"), levelHits(table, "k1")]).toEqual(row.levels);
  });
});

describe("decideRequest() for settle charges and refunds", () => {
  it("stores a settle charge always, with at most one more burst of debt", () => {
    const table = new RecordedTable();
    const settle = testCharge({ role: "settle" });
    const costs = [10, 1, 8, 5, costHitsMax];
    const seen = costs.map((cost) => {
      const { isDenied } = decideRequest([{ ...settle, cost }], table, 0);
      return [isDenied, levelHits(table, "k")];
    });
    expect(seen).toEqual([
      [false, 10],
      [true, 11],
      [true, 19],
      [true, 20],
      [true, 20],
    ]);
    const bucket = table.get(testKey("k")) ?? { level: 0, tUs: 0 };
    expect(retryAfterUs(settle, bucket, 0)).toBe(66 * secondUs);
    expect(bucketTimeToFullUs(settle, bucket, 0)).toBe(2 * minuteUs);
  });

  it("holds the largest debt that there is in whole numbers", () => {
    const table = new RecordedTable();
    const settle = testCharge({ role: "settle", hits: hitsMax, burst: hitsMax, cost: costHitsMax });
    decideRequest([settle], table, 0);
    expect(table.get(settle.key)?.level).toBe(2 * hitsMax * unitsPerHit);
    expect(Number.isSafeInteger(table.get(settle.key)?.level)).toBe(true);
  });

  it("keeps settle charges and refunds of a denied request, and nothing else", () => {
    const table = new RecordedTable();
    for (const key of ["full", "back", "settled"]) {
      const role = key === "settled" ? "settle" : "enforce";
      decideRequest([testCharge({ key, cost: 10, role })], table, 0);
    }
    const charges = [
      testCharge({ key: "free" }),
      testCharge({ key: "back", cost: 4, isRefund: true }),
      testCharge({ key: "settled", cost: 3, role: "settle" }),
      testCharge({ key: "full" }),
      testCharge({ key: "fresh", cost: 3, role: "settle" }),
    ];
    const result = decideRequest(charges, table, 0);
    expect(isOverOf(result)).toEqual([false, false, true, true, false]);
    const levels = ["free", "back", "settled", "full", "fresh"].map((key) => levelHits(table, key));
    expect(levels).toEqual([0, 6, 13, 10, 3]);
    expect(remainingOf(charges, result, 0)).toEqual([10, 4, 0, 0, 7]);
  });

  it("never refuses a refund, also one of nothing for a bucket in debt", () => {
    const table = new RecordedTable();
    decideRequest([testCharge({ cost: 15, role: "settle" })], table, 0);
    const refund = testCharge({ cost: 0, role: "settle", isRefund: true, peekExhausted: true });
    expect(decideRequest([refund], table, 0).isDenied).toBe(false);
  });

  it("takes back a fitting charge on the key of a refund that stays", () => {
    const table = new RecordedTable();
    decideRequest([testCharge({ cost: 5 })], table, 0);
    decideRequest([testCharge({ key: "full", cost: 10 })], table, 0);
    const charges = [
      testCharge({ cost: 3 }),
      testCharge({ cost: 1, isRefund: true }),
      testCharge({ key: "full" }),
    ];
    const result = decideRequest(charges, table, 0);
    expect(result.isDenied).toBe(true);
    expect(levelHits(table, "k")).toBe(4);
    expect(remainingOf(charges, result, 0)).toEqual([5, 6, 0]);
  });

  it("makes room for a later charge of the same request by a refund", () => {
    const table = new RecordedTable();
    decideRequest([testCharge({ cost: 10 })], table, 0);
    const charges = [testCharge({ cost: 2, isRefund: true }), testCharge({ cost: 2 })];
    expect(decideRequest(charges, table, 0).isDenied).toBe(false);
    expect(decideRequest(charges.toReversed(), table, 0).isDenied).toBe(true);
  });

  it("never refunds below an empty bucket, and forgets what is empty", () => {
    const table = new RecordedTable();
    decideRequest([testCharge({ cost: 3 })], table, 0);
    table.takeWrites();
    const refund = testCharge({ cost: costHitsMax, isRefund: true });
    expect(decideRequest([refund], table, 1).isDenied).toBe(false);
    expect(table.takeWrites()).toEqual([{ key: testKey("k") }]);
    decideRequest([refund], table, 2);
    expect(table.takeWrites()).toEqual([]);
    expect(decideRequest([testCharge({ cost: 11 })], table, 2).isDenied).toBe(true);
  });
});

describe("decideRequest() on state that no longer fits", () => {
  it("keeps what was used when the rate and the burst grow", () => {
    const table = new RecordedTable();
    decideRequest([testCharge({ cost: 8 })], table, 0);
    const grown = testCharge({ hits: 100, burst: 100, cost: 0 });
    const result = decideRequest([grown], table, 0);
    expect(remainingOf([grown], result, 0)).toEqual([92]);
  });

  it("refuses above an edited burst until it has drained, and forgets none of it", () => {
    const table = new RecordedTable();
    const wide = testCharge({ burst: 100 });
    const narrow = testCharge();
    decideRequest([{ ...wide, cost: 80 }], table, 0);
    const before = table.takeWrites();
    // Replicas that hold one burst or the other, as an edit is on its way: 71 hits drain in 426 s.
    const answers = [0, 1, 2, 425, 426].map((seconds) =>
      decideRequest([narrow], table.copy(), seconds * secondUs),
    );
    expect(answers.map((answer) => answer.isDenied)).toEqual([true, true, true, true, false]);
    for (const seconds of [0, 1, 2]) decideRequest([narrow], table, seconds * secondUs);
    expect(table.takeWrites()).toEqual([]);
    expect(table.get(testKey("k"))).toEqual(before[0]?.bucket);
    expect(decideRequest([{ ...wide, cost: 21 }], table, 2 * secondUs).isDenied).toBe(true);
    expect(decideRequest([{ ...wide, cost: 20 }], table, 2 * secondUs).isDenied).toBe(false);
  });

  it("tells how long a level above an edited burst refuses", () => {
    const table = new RecordedTable();
    decideRequest([testCharge({ burst: 100, cost: 80 })], table, 0);
    const narrow = testCharge();
    const [found] = decideRequest([narrow], table, secondUs).results;
    if (found === undefined) throw new Error("a charge has no result");
    expect(remainingHits(narrow, found.bucket, secondUs)).toBe(0);
    expect(retryAfterUs(narrow, found.bucket, secondUs)).toBe(425 * secondUs);
  });

  it("keeps debt for a limit that no longer allows debt, and for one of less debt", () => {
    const table = new RecordedTable();
    decideRequest([testCharge({ role: "settle", cost: 20 })], table, 0);
    table.takeWrites();
    expect(decideRequest([testCharge({ cost: 0 })], table, 0).isDenied).toBe(true);
    const less = testCharge({ role: "settle", burst: 5, cost: 3 });
    expect(decideRequest([less], table, 6 * secondUs).isDenied).toBe(true);
    expect(table.takeWrites()).toEqual([]);
    // Once the debt is less than that limit's own may be, it is charged again.
    decideRequest([less], table, 66 * secondUs);
    expect(levelHits(table, "k")).toBe(10);
  });

  it("refunds from a level above the burst what was asked, and no more", () => {
    const table = new RecordedTable();
    decideRequest([testCharge({ burst: 100, cost: 80 })], table, 0);
    decideRequest([testCharge({ cost: 30, isRefund: true })], table, 0);
    expect(levelHits(table, "k")).toBe(50);
  });

  it("takes a time in the future for now, and writes that back even when it refuses", () => {
    const table = new RecordedTable();
    decideRequest([testCharge({ cost: 10 })], table, 1_000 * secondUs);
    table.takeWrites();
    expect(decideRequest([testCharge()], table, 10 * secondUs).isDenied).toBe(true);
    const bucket = { level: 10 * unitsPerHit, tUs: 10 * secondUs };
    const key = testKey("k");
    expect(table.takeWrites()).toEqual([{ key, bucket, timeToFullUs: minuteUs }]);
    expect(decideRequest([testCharge()], table, 16 * secondUs).isDenied).toBe(false);
  });

  it("leaves alone what it finds where an edit to 0 lets nothing in", () => {
    const table = new RecordedTable();
    decideRequest([testCharge({ cost: 5 })], table, 9);
    table.takeWrites();
    const blocked = testCharge({ hits: 0, burst: 0 });
    for (const nowUs of [9, 8]) {
      expect(decideRequest([blocked], table, nowUs).isDenied).toBe(true);
      decideRequest([{ ...blocked, cost: 2, isRefund: true }], table, nowUs);
    }
    expect(table.takeWrites()).toEqual([]);
    expect(levelHits(table, "k")).toBe(5);
  });

  it("lets the first of two overrides on one key say how its bucket drains", () => {
    const table = new RecordedTable();
    const charges = [testCharge({ hits: 20, burst: 20, cost: 12 }), testCharge({ cost: 1 })];
    expect(isOverOf(decideRequest(charges, table, 0))).toEqual([false, true]);
    expect(isOverOf(decideRequest(charges.toReversed(), table, 0))).toEqual([false, false]);
    expect(table.takeWrites().map((write) => write.timeToFullUs)).toEqual([78 * secondUs]);
  });
});
