import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { epochWindows, windowAt } from "../../../../src/core/limits/window.js";
import { propertyRuns } from "../../../support/seeds.js";

const windows = { startUs: 1_000, endUs: 1_600, nextEndUs: 2_000 };

describe("windowAt()", () => {
  it.each([
    { story: "the window before, as if it had begun long ago", nowUs: 999, is: [0, 1_000] },
    { story: "the first instant of the running one", nowUs: 1_000, is: [1_000, 1_600] },
    { story: "the last instant of the running one", nowUs: 1_599, is: [1_000, 1_600] },
    { story: "the one after", nowUs: 1_600, is: [1_600, 2_000] },
    { story: "later ones, of the last known length", nowUs: 2_000, is: [2_000, 2_400] },
    { story: "much later ones", nowUs: 3_999, is: [3_600, 4_000] },
  ])("knows $story", ({ nowUs, is: [startUs, endUs] }) => {
    expect(windowAt(windows, nowUs)).toEqual({ startUs, endUs });
  });
});

describe("epochWindows()", () => {
  it("counts whole periods from 1970, as envoyproxy/ratelimit does", () => {
    const minuteUs = 60_000_000;
    const { startUs, endUs, nextEndUs } = epochWindows(minuteUs, 1_700_000_012_345_678);
    expect(startUs / minuteUs).toBe(Math.floor(1_700_000_012_345_678 / minuteUs));
    expect([endUs - startUs, nextEndUs - endUs]).toEqual([minuteUs, minuteUs]);
  });

  it("holds its own time in the running window, also at the edges", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 3_000 }), fc.nat(10_000_000), (periodUs, nowUs) => {
        const { startUs, endUs } = windowAt(epochWindows(periodUs, nowUs), nowUs);
        expect(startUs % periodUs).toBe(0);
        expect(startUs <= nowUs && nowUs < endUs && endUs - startUs === periodUs).toBe(true);
      }),
      propertyRuns(100),
    );
  });
});
