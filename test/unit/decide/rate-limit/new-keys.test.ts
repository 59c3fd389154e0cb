import { describe, expect, it } from "vitest";
import {
  carriedSizesMax,
  type NewKeyCount,
  NewKeyGuard,
} from "../../../../src/decide/rate-limit/new-keys.js";
import { testKey } from "../../../support/charges.js";

function createCount(): NewKeyCount {
  return { secondMs: 0, count: 0, overflowCount: 0 };
}

describe("NewKeyGuard", () => {
  it("admits so many new keys of a rule a second, and the next ones a second later", () => {
    const guard = new NewKeyGuard({ newKeysPerSecondMax: 3 });
    const count = createCount();
    const admitted = (nowMs: number, names: readonly string[]): readonly boolean[] =>
      names.map((name) => guard.admits(testKey(name), count, nowMs));
    expect(admitted(5_000, ["a", "b", "c", "d", "e"])).toEqual([true, true, true, false, false]);
    expect(admitted(5_999, ["f"])).toEqual([false]);
    expect(admitted(6_000, ["d", "e", "f", "g"])).toEqual([true, true, true, false]);
    expect(count.overflowCount).toBe(4);
  });

  it("always admits a key that was admitted before", () => {
    const guard = new NewKeyGuard({ newKeysPerSecondMax: 1 });
    const count = createCount();
    expect(guard.admits(testKey("a"), count, 1_000)).toBe(true);
    expect(guard.admits(testKey("b"), count, 1_000)).toBe(false);
    for (let i = 0; i < 10; i += 1) expect(guard.admits(testKey("a"), count, 1_000)).toBe(true);
  });

  it("counts each rule by itself", () => {
    const guard = new NewKeyGuard({ newKeysPerSecondMax: 1 });
    expect(guard.admits(testKey("a"), createCount(), 1_000)).toBe(true);
    expect(guard.admits(testKey("b"), createCount(), 1_000)).toBe(true);
  });

  it("admits so many sizes of a carried limit a period, and goes on to admit those", () => {
    const guard = new NewKeyGuard({ newKeysPerSecondMax: 1 });
    const admitted = (hits: number, nowMs: number, key = "a"): boolean =>
      guard.admitsSize(testKey(key), { hits, periodUs: 60_000_000 }, nowMs);
    const sizes = Array.from({ length: carriedSizesMax + 1 }, (_, i) => i);
    const wanted = sizes.map((hits) => hits < carriedSizesMax);
    expect(sizes.map((hits) => admitted(hits, 1_000))).toEqual(wanted);
    expect(sizes.map((hits) => admitted(hits, 60_999))).toEqual(wanted);
    expect(admitted(carriedSizesMax, 1_000, "b")).toBe(true);
    expect(admitted(carriedSizesMax, 61_000)).toBe(true);
  });

  it("forgets keys only after millions of others, and the longest unseen first", () => {
    const guard = new NewKeyGuard({ newKeysPerSecondMax: Number.POSITIVE_INFINITY });
    const count = createCount();
    guard.admits(testKey("old"), count, 0);
    for (let i = 0; i < 2_000_000; i += 1) guard.admits(testKey(`key ${i}`), count, 0);
    const seen = count.count;
    guard.admits(testKey("old"), count, 0);
    expect(count.count).toBe(seen);
    // Of two million keys the hash takes less than one in four for another one.
    expect(seen).toBeGreaterThan(1_500_000);
    for (let i = 0; i < 6_000_000; i += 1) guard.admits(testKey(`more ${i}`), count, 0);
    const later = count.count;
    guard.admits(testKey("key 1999999"), count, 0);
    guard.admits(testKey("key 1999998"), count, 0);
    guard.admits(testKey("key 1999997"), count, 0);
    expect(count.count).toBeGreaterThan(later);
  });
});
