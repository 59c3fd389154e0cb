import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Brownout, defaultBrownoutSettings } from "../../../../src/core/admission/brownout.js";
import { type Priority, priorities } from "../../../../src/core/admission/priority.js";
import { propertyRuns } from "../../../support/seeds.js";

/** Holds each load for so long. */
function loaded(steps: readonly (readonly [loadRatio: number, forMs: number])[]): Brownout {
  const brownout = new Brownout();
  let nowMs = 5_000;
  for (const [loadRatio, forMs] of steps) {
    brownout.update(loadRatio, nowMs);
    nowMs += forMs;
    brownout.update(loadRatio, nowMs);
  }
  return brownout;
}

function degraded(brownout: Brownout): readonly Priority[] {
  return priorities.filter((priority) => brownout.isOn(priority));
}

describe("Brownout", () => {
  it.each([
    { story: "no load", steps: [[0, 10_000]], on: [] },
    { story: "a burst of 0.2 s", steps: [[1, 200]], on: [] },
    { story: "1.2 s of it", steps: [[1, 1_210]], on: ["low"] },
    { story: "2 s of it", steps: [[1, 2_000]], on: ["normal", "low"] },
    { story: "10 s of it", steps: [[1, 10_000]], on: ["critical", "high", "normal", "low"] },
    { story: "a standing load of 0.8", steps: [[0.8, 60_000]], on: ["low"] },
    {
      story: "0.69 after it was full, within the band of normal",
      steps: [
        [1, 10_000],
        [0.69, 60_000],
      ],
      on: ["normal", "low"],
    },
    {
      story: "0.6 after it was full",
      steps: [
        [1, 10_000],
        [0.6, 60_000],
      ],
      on: ["low"],
    },
    {
      story: "0.4 after it was full",
      steps: [
        [1, 10_000],
        [0.4, 60_000],
      ],
      on: [],
    },
  ] as const)("degrades $on after $story", ({ steps, on }) => {
    expect(degraded(loaded(steps))).toEqual(on);
  });

  it("says how much to leave out", () => {
    expect(loaded([[1, 100]]).depthRatio("normal")).toBe(0);
    const edge = loaded([[0.8500001, 1_000_000]]);
    expect(edge.depthRatio("normal")).toBeCloseTo(0.2 / 0.35, 5);
    expect(edge.depthRatio("critical")).toBe(0);
    expect(loaded([[7, 100_000]]).depthRatio("normal")).toBe(1);
  });

  it("takes loads that are none for 0, and time that goes back for none", () => {
    const brownout = new Brownout();
    for (const loadRatio of [Number.NaN, -1, Number.NEGATIVE_INFINITY]) {
      brownout.update(loadRatio, 1_000);
      brownout.update(loadRatio, 900_000);
      expect(brownout.meanRatio).toBe(0);
    }
    brownout.update(Number.POSITIVE_INFINITY, 900_000);
    brownout.update(1, 0);
    expect(brownout.meanRatio).toBe(0);
  });

  it("is on only between its edges, whatever the load does", () => {
    const { fromRatios, bandRatio } = defaultBrownoutSettings;
    const step = fc.record({
      loadRatio: fc.double({ min: 0, max: 2, noNaN: true }),
      forMs: fc.nat(3_000),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const brownout = new Brownout();
        let nowMs = 0;
        for (const { loadRatio, forMs } of steps) {
          nowMs += forMs;
          brownout.update(loadRatio, nowMs);
          for (const priority of priorities) {
            const fromRatio = fromRatios[priority];
            if (brownout.meanRatio >= fromRatio) expect(brownout.isOn(priority)).toBe(true);
            if (brownout.meanRatio < fromRatio - bandRatio)
              expect(brownout.isOn(priority)).toBe(false);
            const depthRatio = brownout.depthRatio(priority);
            expect(depthRatio >= 0 && depthRatio <= 1).toBe(true);
          }
        }
      }),
      propertyRuns(200),
    );
  });
});
