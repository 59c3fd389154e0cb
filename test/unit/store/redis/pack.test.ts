import { describe, expect, it } from "vitest";
import { costHitsMax, levelUnitsMax } from "../../../../src/core/bucket.js";
import { multiplicityMax } from "../../../../src/core/gcra.js";
import { drainTimeUsMax, hitsMax } from "../../../../src/core/limit.js";
import { decodeBucket, decodeReply, encodeBatch } from "../../../../src/store/redis/pack.js";
import { once, testCharge } from "../../../support/charges.js";

describe("encodeBatch()", () => {
  it("names each distinct key once, in the order of first use", () => {
    const batch = [
      once(testCharge({ key: "b" }), testCharge({ key: "a" })),
      once(testCharge({ key: "a" }), testCharge({ key: "b" }), testCharge({ key: "c" })),
    ];
    const { keys, bytes } = encodeBatch(batch);
    expect(keys).toEqual(["b", "a", "c"]);
    expect(bytes.length).toBe(2 * 6 + 5 * 27);
    const positions = [6, 33, 66, 93, 120].map((at) => bytes.readUInt16LE(at));
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
    expect(bytes.readUInt32LE(9)).toBe(hitsMax);
    expect(bytes.readUInt32LE(13)).toBe(hitsMax - 1);
    expect(bytes.readDoubleLE(17)).toBe(drainTimeUsMax);
    expect(bytes.readDoubleLE(25)).toBe(costHitsMax);
  });

  it.each([
    [{}, 16],
    [{ cost: 0 }, 0],
    [{ role: "shadow" }, 1],
    [{ role: "quota" }, 2],
    [{ role: "settle" }, 3],
    [{ isRefund: true }, 4],
    [{ peekExhausted: true }, 24],
    [{ peekExhausted: true, cost: 0 }, 8],
    [{ role: "settle", isRefund: true, peekExhausted: true }, 15],
  ] as const)("packs role and flags: %j is %i", (overrides, flags) => {
    expect(encodeBatch([once(testCharge(overrides))]).bytes.readUInt8(8)).toBe(flags);
  });
});

describe("encodeBatch() of several charges", () => {
  const [a, b] = [testCharge({ key: "a" }), testCharge({ key: "b" })];

  it.each([
    ["each on a key of its own", [a, b], [16, 0]],
    ["a key twice", [a, b, a], [0, 0, 0]],
    ["one shadow charge", [a, { ...b, role: "shadow" }], [0, 1]],
    ["a peek", [{ ...a, cost: 0 }, b], [0, 0]],
    ["a refund", [a, { ...b, isRefund: true }], [0, 4]],
  ] as const)("marks the first of a plain request: %s", (_name, charges, flags) => {
    const alone = encodeBatch([once(...charges)]).bytes;
    expect(flags.map((_, i) => alone.readUInt8(6 + 27 * i + 2))).toEqual(flags);
    // Keys that an earlier request has brought along make no difference.
    const second = encodeBatch([once(b), once(a), once(...charges)]).bytes.subarray(2 * 33);
    expect(flags.map((_, i) => second.readUInt8(6 + 27 * i + 2))).toEqual(flags);
  });
});

describe("decodeReply()", () => {
  const batch = [once(testCharge(), testCharge({ key: "x" })), once(testCharge())];

  function reply(): Buffer {
    const bytes = Buffer.alloc(12 + 2 * 4 + 3 * 25);
    bytes.writeDoubleLE(1_700_000_000_000_001, 0);
    bytes.writeUInt32LE(2, 8);
    bytes.writeUInt32LE(multiplicityMax, 12);
    bytes[41] = 1;
    bytes.writeDoubleLE(5, 42);
    bytes.writeDoubleLE(1_699_999_999_999_999, 50);
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
