import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  budgetMemoryMs,
  RetryBudget,
  type RetryBudgetRates,
} from "../../../../src/core/calls/retry-budget.js";
import { propertyRuns } from "../../../support/seeds.js";

/** Takes as many as there are. */
function takeAll(budget: RetryBudget, nowMs: number): number {
  let count = 0;
  while (budget.take(nowMs)) count += 1;
  return count;
}

/** Serves calls evenly, and takes retries whenever there is one. */
function run(
  budget: RetryBudget,
  { fromMs, seconds, perSecond }: { fromMs: number; seconds: number; perSecond: number },
): number {
  let taken = 0;
  for (let ms = fromMs; ms < fromMs + seconds * 1_000; ms += 1) {
    const count = Math.floor(((ms + 1) * perSecond) / 1_000) - Math.floor((ms * perSecond) / 1_000);
    for (let i = 0; i < count; i += 1) budget.served(ms);
    taken += takeAll(budget, ms);
  }
  return taken;
}

const rates: RetryBudgetRates = { budgetRatio: 0.1, budgetPerSecondMin: 1 };

describe("RetryBudget", () => {
  it("begins with what 10 s without a call bring", () => {
    expect(takeAll(new RetryBudget(rates), 0)).toBe(10);
    expect(takeAll(new RetryBudget({ ...rates, budgetPerSecondMin: 0 }), 0)).toBe(0);
  });

  it("allows a share of what is served, and so many a second beside it", () => {
    const budget = new RetryBudget(rates);
    takeAll(budget, 0);
    expect(run(budget, { fromMs: 0, seconds: 60, perSecond: 100 })).toBeGreaterThan(658);
    expect(run(budget, { fromMs: 60_000, seconds: 60, perSecond: 100 })).toBe(660);
    expect(run(budget, { fromMs: 120_000, seconds: 60, perSecond: 0 })).toBe(60);
  });

  it("allows one after ten calls, though ten times 0.1 is less than 1", () => {
    const budget = new RetryBudget({ budgetRatio: 0.1, budgetPerSecondMin: 0 });
    for (let i = 0; i < 9; i += 1) budget.served(i);
    expect(budget.take(9)).toBe(false);
    budget.served(9);
    expect([budget.take(9), budget.take(9)]).toEqual([true, false]);
  });

  it("allows one even where there is less than one in 10 s", () => {
    const slow = new RetryBudget({ budgetRatio: 0, budgetPerSecondMin: 0.01 });
    expect(takeAll(slow, 0)).toBe(0);
    expect([slow.take(80_000), slow.take(90_000), slow.take(90_000)]).toEqual([false, true, false]);
    expect(slow.left(1_000_000)).toBe(1);
  });

  it("keeps what 10 s bring for a burst, and lets it go after the traffic", () => {
    const budget = new RetryBudget(rates);
    for (let ms = 0; ms < 100_000; ms += 10) budget.served(ms);
    expect(Math.round(budget.left(100_000))).toBe(110);
    expect(budget.left(110_000)).toBeCloseTo(10 + 100 / Math.E, 0);
    expect(budget.left(1_000_000)).toBeCloseTo(10, 6);
  });

  it("gives nothing for a time that goes back", () => {
    const budget = new RetryBudget(rates);
    takeAll(budget, 50_000);
    budget.left(40_000);
    expect(takeAll(budget, 40_000)).toBe(0);
    expect(takeAll(budget, 41_000)).toBe(1);
  });

  it("never allows more than its formula in any part of any history", () => {
    const events = fc.array(
      fc.record({
        afterMs: fc.oneof(fc.constant(0), fc.nat(2_000), fc.nat(60_000)),
        servedCount: fc.nat(50),
        askedCount: fc.nat(50),
      }),
      { minLength: 1, maxLength: 40 },
    );
    const anyRates = fc.record({
      budgetRatio: fc.double({ min: 0, max: 1, noNaN: true }),
      budgetPerSecondMin: fc.double({ min: 0, max: 20, noNaN: true }),
    });
    fc.assert(
      fc.property(anyRates, events, fc.nat(39), (used, history, start) => {
        const budget = new RetryBudget(used);
        let [nowMs, allowed, taken] = [0, used.budgetPerSecondMin * 10, 0];
        history.forEach(({ afterMs, servedCount, askedCount }, i) => {
          // What was kept before this part, which is at most what 10 s bring.
          if (i === start) [allowed, taken] = [budget.left(nowMs), 0];
          nowMs += afterMs;
          allowed += used.budgetPerSecondMin * (afterMs / 1_000) + used.budgetRatio * servedCount;
          for (let n = 0; n < servedCount; n += 1) budget.served(nowMs);
          for (let n = 0; n < askedCount; n += 1) taken += budget.take(nowMs) ? 1 : 0;
          expect(taken).toBeLessThanOrEqual(allowed + 1e-6);
          expect(budget.left(nowMs)).toBeGreaterThanOrEqual(0);
        });
        const idleMs = nowMs + 100 * budgetMemoryMs;
        const kept = Math.max(1, used.budgetPerSecondMin * 10);
        expect(budget.left(idleMs)).toBeLessThanOrEqual(kept + 1e-6);
      }),
      propertyRuns(300),
    );
  });
});
