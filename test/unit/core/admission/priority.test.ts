import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  defaultShedThresholds,
  earlyShedThresholds,
  parsePriority,
  priorities,
  shedRatio,
  sheds,
  shedThreshold,
} from "../../../../src/core/admission/priority.js";
import { propertyRuns } from "../../../support/seeds.js";

/** Classes that are refused whole at a load, and those of which nobody is. */
function split(thresholds: typeof defaultShedThresholds, loadRatio: number) {
  const isShed = (callerHashRatio: number) => (priority: (typeof priorities)[number]) =>
    sheds(thresholds, { priority, loadRatio, callerHashRatio });
  return {
    refused: priorities.filter((priority) => [0, 0.5, 0.999].every((h) => isShed(h)(priority))),
    passed: priorities.filter((priority) => ![0, 0.5, 0.999].some((h) => isShed(h)(priority))),
  };
}

describe("sheds()", () => {
  it.each([
    { load: 0, refused: [], passed: ["critical", "high", "normal", "low"] },
    { load: 0.73, refused: [], passed: ["critical", "high", "normal", "low"] },
    { load: 0.75, refused: ["low"], passed: ["critical", "high", "normal"] },
    { load: 0.92, refused: ["normal", "low"], passed: ["critical", "high"] },
    { load: 0.95, refused: ["high", "normal", "low"], passed: ["critical"] },
    { load: 0.999, refused: ["high", "normal", "low"], passed: ["critical"] },
    { load: 1, refused: ["critical", "high", "normal", "low"], passed: [] },
    { load: 7, refused: ["critical", "high", "normal", "low"], passed: [] },
  ])("refuses $refused at a load of $load", ({ load, refused, passed }) => {
    expect(split(defaultShedThresholds, load)).toEqual({ refused, passed });
  });

  it("keeps half of a service free of what is low, by the preset", () => {
    expect(split(earlyShedThresholds, 0.5).refused).toEqual(["low"]);
    expect(split(earlyShedThresholds, 0.48).refused).toEqual([]);
    expect(split(earlyShedThresholds, 0.74).refused).toEqual(["low"]);
  });

  it("refuses between the edges the same callers at each load, and more as it rises", () => {
    const isShed = (loadRatio: number, callerHashRatio: number): boolean =>
      sheds(defaultShedThresholds, { priority: "normal", loadRatio, callerHashRatio });
    expect([0.2, 0.3].map((hash) => isShed(0.885, hash))).toEqual([true, false]);
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 2, noNaN: true }),
        fc.double({ min: 0, max: 2, noNaN: true }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (some, other, hash) => {
          const [lower, higher] = [Math.min(some, other), Math.max(some, other)];
          expect(isShed(lower, hash) && !isShed(higher, hash)).toBe(false);
        },
      ),
      propertyRuns(100),
    );
  });

  it("never refuses a class while it lets a lower one pass, whoever asks", () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 1.5, noNaN: true }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (loadRatio, callerHashRatio) => {
          const passed = priorities.map(
            (priority) => !sheds(defaultShedThresholds, { priority, loadRatio, callerHashRatio }),
          );
          expect(passed).toEqual(passed.toSorted((one, other) => Number(other) - Number(one)));
        },
      ),
      propertyRuns(100),
    );
  });
});

describe("shedRatio()", () => {
  it("rises on a straight line from the soft edge to the hard one", () => {
    const threshold = { softRatio: 0.5, hardRatio: 0.9 };
    const ratios = [0.4, 0.5, 0.6, 0.7, 0.9, 1].map((load) => shedRatio(threshold, load));
    expect(ratios.map((ratio) => Math.round(ratio * 1e9) / 1e9)).toEqual([0, 0, 0.25, 0.5, 1, 1]);
  });
});

describe("shedThreshold()", () => {
  it("puts the soft edge 0.02 below the hard one, never below an idle service", () => {
    expect(shedThreshold(0.75)).toEqual({ softRatio: 0.73, hardRatio: 0.75 });
    expect(shedThreshold(0.01)).toEqual({ softRatio: 0, hardRatio: 0.01 });
  });
});

describe("parsePriority()", () => {
  it.each([
    { text: "critical", is: "critical" },
    { text: "  High ", is: "high" },
    { text: "NORMAL", is: "normal" },
    { text: "low", is: "low" },
    { text: "", is: undefined },
    { text: "critical,low", is: undefined },
    { text: "0", is: undefined },
    { text: "toString", is: undefined },
  ])("reads $text as $is", ({ text, is }) => {
    expect(parsePriority(text)).toBe(is);
  });
});
