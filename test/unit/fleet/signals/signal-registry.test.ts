import { describe, expect, it } from "vitest";
import type { SignalReadings } from "../../../../src/fleet/signals/signal-readings.js";
import { SignalRegistry } from "../../../../src/fleet/signals/signal-registry.js";

function createRegistry(
  fields: { whenMissing?: "min" | "max"; keysMax?: number } = {},
): SignalRegistry {
  const { whenMissing = "min", keysMax = 3 } = fields;
  return new SignalRegistry({ staleAfterMs: 30_000, whenMissing, keysMax, names: ["orders"] }, 0);
}

function whole(reading: number): SignalReadings {
  return { kind: "whole", reading };
}

function byKey(readings: Readonly<Record<string, number>>): SignalReadings {
  return { kind: "byKey", readings: new Map(Object.entries(readings)) };
}

const nothing = { isAnew: false, byKey: new Map(), gone: [], rest: undefined };

describe("SignalRegistry", () => {
  it("hands one reading on for all", () => {
    const registry = createRegistry();
    expect(registry.heard(whole(5), 0)).toEqual({ ...nothing, isAnew: true, rest: 5 });
    expect(registry.heard(whole(5), 5_000)).toEqual({ ...nothing, rest: 5 });
  });

  it("holds the last reading, then the bound, once, and a new reading after that", () => {
    const registry = createRegistry();
    registry.heard(whole(5), 1_000);
    expect(registry.failed(30_999)).toBeUndefined();
    expect([registry.isMissing(30_999), registry.isMissing(31_000)]).toEqual([false, true]);
    expect(registry.failed(31_000)).toEqual({ ...nothing, rest: "min" });
    expect(registry.failed(36_000)).toBeUndefined();
    expect(registry.heard(whole(7), 41_000)).toEqual({ ...nothing, rest: 7 });
    expect([registry.isMissing(41_000), registry.ageMs(42_000)]).toEqual([false, 1_000]);
  });

  it("says nothing of a source that never answered until that takes too long", () => {
    const registry = createRegistry({ whenMissing: "max" });
    expect(registry.failed(2_000)).toBeUndefined();
    expect(registry.failed(30_000)).toEqual({ ...nothing, isAnew: true, rest: "max" });
  });

  it("tells keys apart, and holds the bound for those that the source does not know", () => {
    const registry = createRegistry();
    const first = registry.heard(byKey({ orders: 1, a: 2 }), 0);
    expect(first).toEqual({
      isAnew: true,
      byKey: new Map([
        ["orders", 1],
        ["a", 2],
      ]),
      gone: [],
      rest: "min",
    });
    const second = registry.heard(byKey({ orders: 3 }), 5_000);
    expect(second).toEqual({ ...nothing, byKey: new Map([["orders", 3]]) });
  });

  it("lets a key go that was not in an answer for long", () => {
    const registry = createRegistry();
    registry.heard(byKey({ orders: 1, a: 2 }), 0);
    registry.heard(byKey({ orders: 1 }), 25_000);
    expect(registry.heard(byKey({ orders: 1 }), 29_999).gone).toEqual([]);
    expect(registry.heard(byKey({ orders: 1 }), 30_000).gone).toEqual(["a"]);
    expect(registry.keyCount).toBe(1);
  });

  it("keeps a key that comes back in the very answer that would have been too late", () => {
    const registry = createRegistry();
    registry.heard(byKey({ a: 2 }), 0);
    expect(registry.heard(byKey({ a: 4 }), 60_000)).toEqual({
      ...nothing,
      byKey: new Map([["a", 4]]),
    });
  });

  it("lets all keys go when the source is away for long", () => {
    const registry = createRegistry();
    registry.heard(byKey({ orders: 1, a: 2 }), 0);
    expect(registry.failed(29_999)).toBeUndefined();
    expect(registry.failed(30_000)).toEqual({ ...nothing, gone: ["orders", "a"] });
  });

  it("holds as many keys as it may, those of the policy first", () => {
    const registry = createRegistry();
    const first = registry.heard(byKey({ a: 1, b: 1, c: 1, d: 1 }), 0);
    expect([...first.byKey.keys()]).toEqual(["a", "b", "c"]);
    const second = registry.heard(byKey({ a: 1, b: 1, c: 1, orders: 9 }), 5_000);
    expect(second.byKey).toEqual(
      new Map([
        ["orders", 9],
        ["b", 1],
        ["c", 1],
      ]),
    );
    expect(second.gone).toEqual(["a"]);
    expect(registry.keyCount).toBe(3);
  });

  it("forgets keys when a source knows none any more", () => {
    const registry = createRegistry();
    registry.heard(byKey({ a: 1 }), 0);
    expect(registry.heard(whole(4), 1)).toEqual({ ...nothing, gone: ["a"], rest: 4 });
  });
});
