import { describe, expect, it } from "vitest";
import { DecayedMean, DecayedSum } from "../../../../src/core/collections/decayed-sum.js";

describe("DecayedSum", () => {
  it("keeps 1/e of what was added a time constant ago", () => {
    const sum = new DecayedSum(1_000);
    sum.add(10, 5_000);
    expect(sum.at(5_000)).toBe(10);
    expect(sum.at(6_000)).toBeCloseTo(10 / Math.E, 9);
    sum.add(1, 6_000);
    expect(sum.at(7_000)).toBeCloseTo(10 / Math.E ** 2 + 1 / Math.E, 9);
  });

  it("is nothing before anything was added, at any time", () => {
    expect(new DecayedSum(1_000).at(0)).toBe(0);
    expect(new DecayedSum(1_000).at(1e12)).toBe(0);
  });

  it("grows by nothing when time goes back", () => {
    const sum = new DecayedSum(1_000);
    sum.add(10, 5_000);
    expect(sum.at(1_000)).toBe(10);
    sum.add(1, 1_000);
    expect(sum.at(5_000)).toBe(11);
  });
});

describe("DecayedMean", () => {
  it("has none before the first reading", () => {
    const mean = new DecayedMean(1_000);
    expect(mean.mean).toBeUndefined();
    expect(mean.weight(0)).toBe(0);
  });

  it("lets later readings count more, and does not change in silence", () => {
    const mean = new DecayedMean(1_000);
    mean.add(1, 0);
    mean.add(0, 1_000);
    const kept = 1 / Math.E;
    expect(mean.mean).toBeCloseTo(kept / (kept + 1), 9);
    expect(mean.weight(1_000)).toBeCloseTo(kept + 1, 9);
    expect(mean.weight(2_000)).toBeCloseTo((kept + 1) * kept, 9);
    mean.add(5, 1e9);
    expect(mean.mean).toBe(5);
  });
});
