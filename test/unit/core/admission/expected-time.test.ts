import { describe, expect, it } from "vitest";
import { expectedTimeMs } from "../../../../src/core/admission/expected-time.js";

const found = {
  count: 30,
  gapMs: 5,
  serviceMs: 50,
  baselineMs: 50,
  isFull: true,
  partRatio: 1,
} as const;

describe("expectedTimeMs", () => {
  it("is as long as all before it take to end, and as what scatters is longer", () => {
    expect(expectedTimeMs("normal", { ...found, isFull: false })).toBe(150);
    expect(expectedTimeMs("normal", { ...found, baselineMs: undefined })).toBe(150);
    expect(expectedTimeMs("normal", found)).toBeCloseTo((30 + 6 * Math.sqrt(20)) * 5);
  });

  it("is shorter for critical requests, who may well be served in time", () => {
    expect(expectedTimeMs("critical", found)).toBeCloseTo((30 - 0.8 * Math.sqrt(30)) * 5);
  });

  it("scatters less for a part of a fleet", () => {
    const part = { ...found, partRatio: 0.25 };
    expect(expectedTimeMs("critical", part)).toBeCloseTo((30 - 0.8 * Math.sqrt(7.5)) * 5);
  });

  it("is no shorter than a request takes", () => {
    expect(expectedTimeMs("critical", { ...found, count: 1 })).toBe(50);
  });
});
