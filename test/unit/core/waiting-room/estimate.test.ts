import { describe, expect, it } from "vitest";
import {
  type LinePace,
  nextRangeFactor,
  rangeHeld,
  waitRange,
} from "../../../../src/core/waiting-room/estimate.js";
import { FakeRandom } from "../../../support/fake-random.js";

const pace: LinePace = {
  entriesPerSecond: 10,
  entriesMeasuredCount: 1e6,
  abandonPerSecond: 0,
  rangeFactor: 1,
};

describe("waitRange()", () => {
  it("is the example of its comment", () => {
    const range = waitRange(99, { ...pace, entriesMeasuredCount: 1_000 }, 0);
    expect(range?.lowSeconds).toBeCloseTo(8.3, 1);
    expect(range?.middleSeconds).toBeCloseTo(10, 1);
    expect(range?.highSeconds).toBeCloseTo(11.8, 1);
  });

  it("is unknown where nobody enters", () => {
    expect(waitRange(0, { ...pace, entriesPerSecond: undefined }, 5)).toBeUndefined();
    expect(waitRange(0, { ...pace, entriesPerSecond: 0 }, 5)).toBeUndefined();
  });

  it.each([
    { aheadCount: 0, abandonPerSecond: 0, refreshSeconds: 0 },
    { aheadCount: 5, abandonPerSecond: 0, refreshSeconds: 0 },
    { aheadCount: 300, abandonPerSecond: 0, refreshSeconds: 0 },
    { aheadCount: 300, abandonPerSecond: 0.05, refreshSeconds: 0 },
    { aheadCount: 3_000, abandonPerSecond: 0.02, refreshSeconds: 0 },
    { aheadCount: 10, abandonPerSecond: 0, refreshSeconds: 5 },
  ])(
    "holds for 90 % with $aheadCount ahead who leave at $abandonPerSecond a second",
    ({ aheadCount, abandonPerSecond, refreshSeconds }) => {
      const random = new FakeRandom(aheadCount + 1);
      const range = waitRange(aheadCount, { ...pace, abandonPerSecond }, refreshSeconds);
      let heldCount = 0;
      let belowCount = 0;
      const draws = 4_000;
      for (let draw = 0; draw < draws; draw += 1) {
        let seconds = random.next() * refreshSeconds;
        for (let ahead = aheadCount; ahead >= 0; ahead -= 1) {
          seconds -= Math.log(1 - random.next()) / (10 + abandonPerSecond * ahead);
        }
        if (seconds < (range?.lowSeconds ?? 0)) belowCount += 1;
        else if (seconds <= (range?.highSeconds ?? 0)) heldCount += 1;
      }
      expect(heldCount / draws).toBeGreaterThan(0.87);
      expect(heldCount / draws).toBeLessThan(0.94);
      expect(belowCount / draws).toBeLessThan(0.1);
    },
  );

  it("is wider by the factor, and where little was measured", () => {
    const width = (change: Partial<LinePace>): number => {
      const range = waitRange(99, { ...pace, ...change }, 0);
      return (range?.highSeconds ?? 0) - (range?.lowSeconds ?? 0);
    };
    expect(width({ rangeFactor: 2 }) / width({})).toBeCloseTo(2, 1);
    expect(width({ entriesMeasuredCount: 10 })).toBeGreaterThan(3 * width({}));
    expect(width({ entriesMeasuredCount: 0, rangeFactor: 8 })).toBeLessThan(1e4);
  });

  it("falls with each visitor ahead who enters or leaves", () => {
    let before = Number.POSITIVE_INFINITY;
    for (let ahead = 1_000; ahead >= 0; ahead -= 1) {
      const middle = waitRange(ahead, { ...pace, abandonPerSecond: 0.01 }, 5)?.middleSeconds ?? 0;
      expect(middle).toBeLessThan(before);
      before = middle;
    }
  });
});

describe("rangeHeld()", () => {
  const range = waitRange(99, { ...pace, rangeFactor: 2 }, 0);
  const announced = { lowSeconds: 0, middleSeconds: 0, highSeconds: 0, ...range, rangeFactor: 2 };

  it("says of the announced factor whether the range held", () => {
    const held = (seconds: number): boolean => rangeHeld(announced, seconds, 2);
    expect(held(announced.lowSeconds * 1.001)).toBe(true);
    expect(held(announced.lowSeconds * 0.999)).toBe(false);
    expect(held(announced.highSeconds * 0.999)).toBe(true);
    expect(held(announced.highSeconds * 1.001)).toBe(false);
    expect(held(announced.middleSeconds)).toBe(true);
  });

  it("says of another factor what its range would have said", () => {
    const narrow = waitRange(99, { ...pace, rangeFactor: 0.7 }, 0);
    expect(rangeHeld(announced, (narrow?.highSeconds ?? 0) - 0.01, 0.7)).toBe(true);
    expect(rangeHeld(announced, (narrow?.highSeconds ?? 0) + 0.01, 0.7)).toBe(false);
    expect(rangeHeld(announced, (narrow?.lowSeconds ?? 0) - 0.01, 0.7)).toBe(false);
  });
});

describe("nextRangeFactor()", () => {
  it("rests where a little more than 90 % hold, however wide ranges have to be for it", () => {
    const random = new FakeRandom(3);
    for (const scale of [0.4, 1, 3]) {
      let factor = 1;
      let heldCount = 0;
      for (let i = 0; i < 60_000; i += 1) {
        // Truths that need a factor of up to `scale` in 90 %, and a longer one otherwise.
        const needed = random.next() < 0.9 ? scale * random.next() : scale * (1 + random.next());
        const isHeld = needed <= factor;
        factor = nextRangeFactor(factor, { endedCount: 1, heldCount: isHeld ? 1 : 0 });
        if (i >= 10_000 && isHeld) heldCount += 1;
      }
      expect(Math.abs(heldCount / 50_000 - 0.915)).toBeLessThan(0.01);
    }
  });

  it("moves little at a time, and within bounds", () => {
    expect(nextRangeFactor(1, { endedCount: 1e6, heldCount: 0 })).toBeLessThan(1.05);
    expect(nextRangeFactor(1, { endedCount: 0, heldCount: 0 })).toBe(1);
    expect(nextRangeFactor(8, { endedCount: 100, heldCount: 0 })).toBe(8);
    expect(nextRangeFactor(1 / 8, { endedCount: 100, heldCount: 100 })).toBe(1 / 8);
  });
});
