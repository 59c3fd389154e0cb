import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type KeyCount, Permits, PermitsByKey } from "../../../../src/core/admission/permits.js";
import { priorities } from "../../../../src/core/admission/priority.js";
import { propertyRuns } from "../../../support/seeds.js";

describe("Permits", () => {
  it("counts by class, and with each class those above it", () => {
    const permits = new Permits();
    for (const priority of ["low", "critical", "normal", "critical", "high"] as const) {
      permits.take(priority);
    }
    permits.giveBack("high");
    expect(priorities.map((priority) => permits.inUseFrom(priority))).toEqual([2, 2, 3, 4]);
    expect(permits.inUseCount).toBe(4);
  });

  it("tells what is asked over what ends, whatever became of who asked", () => {
    const permits = new Permits();
    expect(permits.loadRatio).toBeUndefined();
    expect(permits.criticalRatio).toBe(Number.POSITIVE_INFINITY);
    for (let i = 0; i < 3_000; i += 1) {
      permits.take(i % 2 === 0 ? "critical" : "low");
      permits.noteRefused("normal");
      permits.noteAsked("high");
      permits.giveBack(i % 2 === 0 ? "critical" : "low");
    }
    expect(permits.loadRatio).toBeCloseTo(3, 1);
    expect(permits.criticalRatio).toBeCloseTo(0.5, 1);
    // What no permit would have helped is no demand for more of them.
    expect(permits.takeDemand()).toBe(3_001);
  });

  it("takes nobody who has left unanswered for one that has ended", () => {
    const permits = new Permits();
    for (let i = 0; i < 3_000; i += 1) {
      permits.take("critical");
      permits.giveBack("critical", i % 4 !== 0);
    }
    expect(permits.loadRatio).toBeCloseTo(4, 1);
    expect(permits.inUseCount).toBe(0);
  });

  it("says what was needed at most since it was asked last", () => {
    const permits = new Permits();
    for (let i = 0; i < 3; i += 1) permits.take("normal");
    for (let i = 0; i < 3; i += 1) permits.noteRefused("normal");
    permits.giveBack("normal");
    expect(permits.takeDemand()).toBe(6);
    expect(permits.takeDemand()).toBe(2);
    permits.giveBack("normal");
    permits.giveBack("normal");
    expect(permits.takeDemand()).toBe(2);
    expect(permits.takeDemand()).toBe(0);
  });

  it("takes a permit that was never taken for a fault of ours", () => {
    const permits = new Permits();
    expect(() => permits.giveBack("low")).toThrow("a permit is given back once");
    permits.take("low");
    expect(() => permits.giveBack("high")).toThrow("a permit is given back once");
    permits.giveBack("low");
    expect(() => permits.giveBack("low")).toThrow("a permit is given back once");
  });
});

describe("KeyedPermits", () => {
  it("counts each key by itself, and forgets it with its last permit", () => {
    const permits = new PermitsByKey({ max: 2, keysMax: 10 });
    const [one, other] = [permits.take("a"), permits.take("a")];
    expect(permits.hasRoom("a")).toBe(false);
    expect(permits.hasRoom("b")).toBe(true);
    expect(permits.keyCount).toBe(1);
    permits.giveBack(one);
    expect(permits.hasRoom("a")).toBe(true);
    permits.giveBack(other);
    expect(permits.keyCount).toBe(0);
    expect(() => permits.giveBack(other)).toThrow("a permit is given back once");
  });

  it("lets keys above its bound share the permits of one", () => {
    const permits = new PermitsByKey({ max: 2, keysMax: 1 });
    const first = permits.take("a");
    const others = [permits.take("b"), permits.take("c")];
    expect(["a", "b", "d"].map((key) => permits.hasRoom(key))).toEqual([true, false, false]);
    expect(permits.keyCount).toBe(1);
    permits.giveBack(first);
    // A key that finds room now does not take back what it has among the others.
    const own = permits.take("b");
    expect(permits.hasRoom("b")).toBe(true);
    for (const count of [...others, own]) permits.giveBack(count);
    expect(permits.keyCount).toBe(0);
  });

  it("holds what is in flight in any order of taking and giving back", () => {
    const keysMax = 3;
    const ops = fc.array(fc.tuple(fc.boolean(), fc.nat(6)), { maxLength: 200 });
    fc.assert(
      fc.property(ops, (steps) => {
        const permits = new PermitsByKey({ max: 2, keysMax });
        const held: KeyCount[] = [];
        for (const [isTake, n] of steps) {
          if (isTake) held.push(permits.take(`key-${n}`));
          else
            for (const count of held.splice(n % Math.max(1, held.length), 1))
              permits.giveBack(count);
          expect(permits.keyCount).toBeLessThanOrEqual(keysMax);
          expect(held.reduce((sum, one) => sum + (one.inUseCount > 0 ? 1 : 0), 0)).toBe(
            held.length,
          );
        }
        for (const count of held) permits.giveBack(count);
        expect(permits.keyCount).toBe(0);
      }),
      propertyRuns(100),
    );
  });
});
