import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  defaultGateSettings,
  fadingInput,
  Gate,
  gateProblem,
} from "../../../../src/core/admission/gate.js";
import { propertyRuns } from "../../../support/seeds.js";

/** A gate's state and share after each input. */
function gateAfter(inputs: readonly number[]): readonly string[] {
  const gate = new Gate();
  return inputs.map((input) => {
    gate.update(input);
    return `${gate.state} ${gate.passRatio.toFixed(3)}`;
  });
}

describe("Gate", () => {
  it.each([
    { input: 0, is: "open 1.000" },
    { input: 0.399, is: "open 1.000" },
    { input: 0.4, is: "limiting 1.000" },
    { input: 0.5, is: "limiting 0.775" },
    { input: 0.6, is: "limiting 0.550" },
    { input: 0.8, is: "limiting 0.100" },
    { input: 0.801, is: "closed 0.000" },
    { input: 1, is: "closed 0.000" },
  ])("is $is at $input", ({ input, is }) => {
    expect(gateAfter([input])).toEqual([is]);
  });

  it("passes everything before its first input", () => {
    const gate = new Gate();
    expect([gate.state, gate.passRatio, gate.inputRatio]).toEqual(["open", 1, 0]);
    expect(gate.passes(0.999)).toBe(true);
  });

  it("stays closed until the input is a quarter of the band below, then is on the line", () => {
    expect(gateAfter([0.81, 0.79, 0.71, 0.7, 0.75, 0.79])).toEqual([
      "closed 0.000",
      "closed 0.000",
      "closed 0.000",
      "limiting 0.325",
      "limiting 0.213",
      "limiting 0.123",
    ]);
  });

  it("opens at once where the input is below the band", () => {
    expect(gateAfter([0.9, 0.39])).toEqual(["closed 0.000", "open 1.000"]);
  });

  it("passes its share of draws", () => {
    const gate = new Gate();
    gate.update(0.6);
    expect([0, 0.549, 0.551, 0.999].map((draw) => gate.passes(draw))).toEqual([
      true,
      true,
      false,
      false,
    ]);
    gate.update(1);
    expect(gate.passes(0)).toBe(false);
  });

  it("takes new thresholds while it runs, for the input there is", () => {
    const gate = new Gate();
    gate.update(0.6);
    expect(gate.change({ ...defaultGateSettings, openBelowRatio: 0.7 })).toBeUndefined();
    expect(gate.state).toBe("open");
    const lower = { openBelowRatio: 0.1, closeAboveRatio: 0.5, passAtCloseRatio: 0.1 };
    expect(gate.change(lower)).toBeUndefined();
    expect(gate.state).toBe("closed");
    expect(gate.settings).toEqual(lower);
  });

  it.each([
    { openBelowRatio: 0.8, closeAboveRatio: 0.8, passAtCloseRatio: 0.1 },
    { openBelowRatio: 0.9, closeAboveRatio: 0.8, passAtCloseRatio: 0.1 },
    { openBelowRatio: -0.1, closeAboveRatio: 0.8, passAtCloseRatio: 0.1 },
    { openBelowRatio: 0.4, closeAboveRatio: 1.1, passAtCloseRatio: 0.1 },
    { openBelowRatio: 0.4, closeAboveRatio: 0.8, passAtCloseRatio: Number.NaN },
  ])("keeps what it has when it is told $openBelowRatio, $closeAboveRatio", (settings) => {
    const gate = new Gate();
    gate.update(0.6);
    expect(gate.change(settings)).toBe(gateProblem(settings));
    expect(gateProblem(settings)).toMatch(/Ratio is not/);
    expect(gate.settings).toEqual(defaultGateSettings);
    expect(gate.passRatio).toBeCloseTo(0.55, 9);
  });

  it("never passes more at a higher input, but for a gate that was closed", () => {
    const ratio = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(ratio, ratio, (some, other) => {
        const [lower, higher] = [new Gate(), new Gate()];
        lower.update(Math.min(some, other));
        higher.update(Math.max(some, other));
        expect(higher.passRatio).toBeLessThanOrEqual(lower.passRatio);
      }),
      propertyRuns(100),
    );
  });
});

describe("gateProblem()", () => {
  it("finds nothing wrong with what is in order", () => {
    expect(gateProblem(defaultGateSettings)).toBeUndefined();
    expect(
      gateProblem({ openBelowRatio: 0, closeAboveRatio: 1, passAtCloseRatio: 0 }),
    ).toBeUndefined();
  });
});

describe("fadingInput()", () => {
  it("lets a gate that hears nothing more open by and by, and never close by itself", () => {
    const gate = new Gate();
    const step = (inputRatio: number) => {
      gate.update(fadingInput(gate, inputRatio));
      return [gate.state, Math.round(gate.passRatio * 1_000) / 1_000];
    };
    expect([1, 0, 0, 0, 0].map(step)).toEqual([
      ["closed", 0],
      ["limiting", 0.325],
      ["limiting", 0.798],
      ["open", 1],
      ["open", 1],
    ]);
    // What comes on the way says what is true.
    expect([1, 0, 0.9, 0, 0, 0].map((input) => step(input)[0])).toEqual([
      "closed",
      "limiting",
      "closed",
      "limiting",
      "limiting",
      "open",
    ]);
  });
});
