import { describe, expect, it } from "vitest";
import {
  OverriddenLimits,
  type OverrideEffect,
  overriddenLimitsMax,
} from "../../../../src/core/limits/override.js";
import { testLimit } from "../../../support/policies.js";

const limit = testLimit(10);
const half = { effect: { kind: "multiplier", by: 0.5 } } as const;

describe("OverriddenLimits", () => {
  it("has one limit for all overrides that do the same to it", () => {
    const limits = new OverriddenLimits();
    const made = limits.limitOf(limit, half);
    expect(made).toEqual({ ...limit, hits: 5, burst: 5 });
    expect(limits.limitOf(limit, { effect: { ...half.effect } })).toBe(made);
  });

  it("tells apart what overrides do, and to which limit", () => {
    const limits = new OverriddenLimits();
    const effects: readonly OverrideEffect[] = [
      half.effect,
      { kind: "multiplier", by: 2 },
      { kind: "amount", hits: 5, burst: 5 },
      { kind: "amount", hits: 5, burst: 6 },
      { kind: "frozen" },
    ];
    const made = [limit, testLimit(10)].flatMap((one) =>
      effects.map((effect) => limits.limitOf(one, { effect })),
    );
    expect(new Set(made).size).toBe(10);
    expect(made.map((one) => limits.numberOf(one))).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(limits.numberOf(limit)).toBeUndefined();
  });

  it("keeps no more than its bound, and makes the others for each who asks", () => {
    const limits = new OverriddenLimits();
    const amount = (hits: number) => ({ effect: { kind: "amount", hits, burst: hits } }) as const;
    for (let hits = 1; hits <= overriddenLimitsMax; hits += 1) limits.limitOf(limit, amount(hits));
    const last = limits.limitOf(limit, amount(overriddenLimitsMax));
    expect(limits.numberOf(last)).toBe(overriddenLimitsMax - 1);
    const beyond = limits.limitOf(limit, amount(overriddenLimitsMax + 1));
    expect(beyond.hits).toBe(overriddenLimitsMax + 1);
    expect(limits.numberOf(beyond)).toBeUndefined();
    expect(limits.limitOf(limit, amount(overriddenLimitsMax + 1))).not.toBe(beyond);
  });
});
