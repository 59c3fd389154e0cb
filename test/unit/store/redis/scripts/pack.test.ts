import { describe, expect, it } from "vitest";
import { type Charge, costHitsMax, levelUnitsMax } from "../../../../../src/core/limits/bucket.js";
import { multiplicityMax } from "../../../../../src/core/limits/gcra.js";
import { drainTimeUsMax, hitsMax } from "../../../../../src/core/limits/limit.js";
import type { StoreRequest } from "../../../../../src/store/limit-store.js";
import {
  decodeBucket,
  decodeReply,
  encodeBatch,
} from "../../../../../src/store/redis/scripts/pack.js";
import { once, testCharge, testKey } from "../../../../support/charges.js";

/** Packed, a request has these before its charges. */
const headBytes = 8;
const chargeBytes = 31;
/** A request of one charge without windows. */
const requestBytes = headBytes + chargeBytes;

describe("encodeBatch()", () => {
  it("names each distinct key once, in the order of first use", () => {
    const batch = [
      once(testCharge({ key: "b" }), testCharge({ key: "a" })),
      once(testCharge({ key: "a" }), testCharge({ key: "b" }), testCharge({ key: "c" })),
    ];
    const { keys, bytes } = encodeBatch(batch);
    expect(keys).toEqual(["b", "a", "c"]);
    expect(bytes.length).toBe(2 * headBytes + 5 * chargeBytes);
    const second = 2 * headBytes + 2 * chargeBytes;
    const starts = [headBytes, headBytes + chargeBytes];
    starts.push(...[0, 1, 2].map((i) => second + i * chargeBytes));
    const positions = starts.map((at) => bytes.readUInt16LE(at));
    expect(positions).toEqual([1, 2, 2, 1, 3]);
  });

  it("packs the largest numbers without loss", () => {
    const limit = {
      hits: hitsMax,
      burst: hitsMax - 1,
      periodUs: drainTimeUsMax,
      cost: costHitsMax,
    };
    const { bytes } = encodeBatch([
      { charges: [testCharge(limit)], multiplicity: multiplicityMax },
    ]);
    expect(bytes.readUInt16LE(0)).toBe(1);
    expect(bytes.readUInt32LE(2)).toBe(multiplicityMax);
    expect(bytes.readUInt32LE(11)).toBe(hitsMax);
    expect(bytes.readDoubleLE(15)).toBe(hitsMax - 1);
    expect(bytes.readDoubleLE(23)).toBe(drainTimeUsMax);
    expect(bytes.readDoubleLE(31)).toBe(costHitsMax);
  });

  it.each([
    [{}, 16],
    [{ cost: 0 }, 16],
    [{ role: "shadow" }, 17],
    [{ role: "quota" }, 18],
    [{ role: "settle" }, 80],
    [{ role: "shadowSettle" }, 81],
    [{ role: "quotaSettle" }, 82],
    [{ isRefund: true }, 20],
    [{ peekExhausted: true }, 24],
    [{ peekExhausted: true, cost: 0 }, 24],
    [{ role: "settle", isRefund: true, peekExhausted: true }, 92],
    [{ windows: { startUs: 0, endUs: 5, nextEndUs: 10 } }, 48],
    [{ lastKey: testKey("last") }, 128],
  ] as const)("packs role and flags: %j is %i", (overrides, flags) => {
    expect(encodeBatch([once(testCharge(overrides))]).bytes.readUInt8(10)).toBe(flags);
  });
});

describe("encodeBatch() of several charges", () => {
  const [a, b] = [testCharge({ key: "a" }), testCharge({ key: "b" })];

  it.each([
    ["each on a key of its own", [a, b], [16, 0]],
    ["a key twice", [a, b, a], [0, 0, 0]],
    ["one shadow charge", [a, { ...b, role: "shadow" }], [16, 1]],
    ["a peek", [{ ...a, cost: 0 }, b], [16, 0]],
    ["a refund", [a, { ...b, isRefund: true }], [16, 4]],
    ["a limit that was carried", [a, { ...b, lastKey: testKey("last") }], [0, 128]],
  ] as const)("marks the first of a request on keys of its own: %s", (_name, charges, flags) => {
    const alone = encodeBatch([once(...charges)]).bytes;
    expect(flags.map((_, i) => alone.readUInt8(headBytes + chargeBytes * i + 2))).toEqual(flags);
    // Keys that an earlier request has brought along make no difference.
    const before = [once(b), once({ ...a, cost: 9 })];
    const second = encodeBatch([...before, once(...charges)]).bytes.subarray(2 * requestBytes);
    expect(flags.map((_, i) => second.readUInt8(headBytes + chargeBytes * i + 2))).toEqual(flags);
  });
});

describe("encodeBatch() of requests alike", () => {
  const on = (key: string, overrides: Partial<Charge> = {}) =>
    once(testCharge({ key, ...overrides }));

  /** How many requests each packed one stands for, where all have one charge without windows. */
  function runsOf(...batch: readonly StoreRequest[]): readonly number[] {
    const { bytes } = encodeBatch(batch);
    return Array.from({ length: bytes.length / requestBytes }, (_, i) =>
      bytes.readUInt16LE(requestBytes * i + 6),
    );
  }

  it("packs one for all that follow each other on new keys", () => {
    expect(runsOf(on("a"), on("b"), on("c"))).toEqual([3]);
    const { keys } = encodeBatch([on("a"), on("b"), on("c")]);
    expect(keys).toEqual(["a", "b", "c"]);
  });

  it.each([
    ["another cost", [on("a"), on("b", { cost: 2 }), on("c", { cost: 2 })], [1, 2]],
    ["another burst", [on("a"), on("b", { burst: 3 })], [1, 1]],
    ["another delay", [on("a"), on("b", { delayUs: 5 })], [1, 1]],
    ["another period", [on("a"), on("b", { periodUs: 5 })], [1, 1]],
    ["other hits", [on("a"), on("b", { hits: 3 })], [1, 1]],
    ["another role", [on("a"), on("b", { role: "shadow" }), on("c", { role: "shadow" })], [1, 2]],
    ["a refund", [on("a"), on("b", { isRefund: true })], [1, 1]],
    ["another multiplicity", [on("a"), { ...on("b"), multiplicity: 2 }], [1, 1]],
    ["a key that came before", [on("a"), on("b"), on("a"), on("c")], [2, 1, 1]],
  ] as const)("begins anew with %s", (_name, batch, runs) => {
    expect(runsOf(...batch)).toEqual(runs);
  });

  it("packs those of several charges as one, with the positions of their keys behind it", () => {
    const on2 = (one: string, other: string, overrides: Partial<Charge> = {}) =>
      once(testCharge({ key: one, ...overrides }), testCharge({ key: other, hits: 3 }));
    const { keys, bytes } = encodeBatch([on2("a", "all"), on2("b", "all"), on2("a", "c")]);
    expect(keys).toEqual(["a", "all", "b", "c"]);
    const endAt = headBytes + 2 * chargeBytes;
    expect([bytes.readUInt16LE(6), bytes.length]).toEqual([3, endAt + 2 * 2 * 2]);
    const positions = [0, 2, 4, 6].map((i) => bytes.readUInt16LE(endAt + i));
    expect(positions).toEqual([3, 2, 1, 4]);
    const unlike = [
      on2("b", "all", { cost: 2 }),
      on2("b", "b"),
      { ...on2("b", "c"), multiplicity: 2 },
      on("b"),
    ];
    for (const other of unlike) {
      expect(encodeBatch([on2("a", "all"), other]).bytes.readUInt16LE(6)).toBe(1);
    }
  });

  it("packs a request of several charges by itself, and what follows it anew", () => {
    const several = once(testCharge({ key: "b" }), testCharge({ key: "c" }));
    const { bytes } = encodeBatch([on("a"), several, on("d"), on("e")]);
    const third = 2 * requestBytes + chargeBytes;
    const runs = [0, requestBytes, third].map((at) => bytes.readUInt16LE(at + 6));
    expect([bytes.length, runs]).toEqual([third + requestBytes, [1, 1, 2]]);
  });
});

describe("decodeReply()", () => {
  const batch = [once(testCharge(), testCharge({ key: "x" })), once(testCharge())];

  function reply(): Buffer {
    const bytes = Buffer.alloc(16 + 2 * 8 + 3 * 16);
    bytes.writeDoubleLE(1_700_000_000_000_001, 0);
    bytes.writeDoubleLE(2, 8);
    bytes.writeDoubleLE(multiplicityMax, 16);
    bytes.writeDoubleLE(-6, 40);
    bytes.writeDoubleLE(1_699_999_999_999_999, 48);
    return bytes;
  }

  it("reads the store's time, what was granted and every charge's bucket", () => {
    const { outcomes, badBucketCount } = decodeReply(reply(), batch);
    expect(badBucketCount).toBe(2);
    const nowUs = 1_700_000_000_000_001;
    const empty = { isOver: false, bucket: { level: 0, tUs: 0 } };
    const over = { isOver: true, bucket: { level: 5, tUs: 1_699_999_999_999_999 } };
    expect(outcomes).toEqual([
      { kind: "decided", result: { grantedCount: multiplicityMax, results: [empty, over], nowUs } },
      { kind: "decided", result: { grantedCount: 0, results: [empty], nowUs } },
    ]);
  });

  it.each([
    ["too short", reply().subarray(1)],
    ["too long", Buffer.concat([reply(), Buffer.alloc(1)])],
    ["a count", 1],
    ["nothing", undefined],
  ])("throws STORE_PROTOCOL when it is something else: %s", (_name, bytes) => {
    expect(() => decodeReply(bytes, batch)).toThrow(
      expect.objectContaining({ code: "STORE_PROTOCOL" }),
    );
  });
});

describe("decodeBucket()", () => {
  it("reads what the script wrote, and nothing else", () => {
    const value = Buffer.alloc(24);
    value.writeDoubleLE(7, 0);
    value.writeDoubleLE(8, 8);
    expect(decodeBucket(value)).toEqual({ level: 7, tUs: 8 });
    expect(decodeBucket(value.subarray(1))).toBeUndefined();
    for (const level of [0.5, -1, levelUnitsMax + 1, Number.NaN]) {
      value.writeDoubleLE(level, 0);
      expect(decodeBucket(value)).toBeUndefined();
    }
    value.writeDoubleLE(levelUnitsMax, 0);
    expect(decodeBucket(value)?.level).toBe(levelUnitsMax);
  });
});
