import { describe, expect, it } from "vitest";
import { createBreaker, createRetryBudget, createThrottle } from "../../../src/client/parts.js";
import { FakeClock } from "../../support/fake-clock.js";
import { FakeRandom } from "../../support/fake-random.js";

describe("createThrottle()", () => {
  it("refuses as much as the service does, and nothing where it serves", () => {
    const clock = new FakeClock();
    const throttle = createThrottle({ clock, random: new FakeRandom() });
    for (let i = 0; i < 100; i += 1) {
      if (!throttle.rejects()) throttle.learn(i % 10 === 0 ? "failed" : "served");
    }
    throttle.learn("cancelled");
    expect(throttle.rejectRatio).toBe(0);
    for (let i = 0; i < 300; i += 1) if (!throttle.rejects()) throttle.learn("overloaded");
    // (400 - 2 x 100) / 401, the requests that it refused itself included.
    expect(throttle.rejectRatio).toBeCloseTo(200 / 401, 10);
  });
});

describe("createBreaker()", () => {
  it("opens by failures, lets a probe through, and closes by its success", () => {
    const clock = new FakeClock();
    const breaker = createBreaker({ clock, callsMin: 2, openMs: 100, probesCount: 1 });
    for (const kind of ["failed", "overloaded"] as const) {
      const end = breaker.admit();
      expect(breaker.state).toBe("closed");
      end?.(kind);
      end?.(kind);
    }
    expect([breaker.state, breaker.openMs]).toEqual(["open", 100]);
    expect(breaker.admit()).toBeUndefined();
    clock.advance(100);
    expect([breaker.state, breaker.openMs]).toEqual(["halfOpen", 0]);
    const probe = breaker.admit();
    expect(breaker.admit()).toBeUndefined();
    probe?.("served");
    expect(breaker.state).toBe("closed");
  });
});

describe("createRetryBudget()", () => {
  it("gives a share of successes, and a floor", () => {
    const clock = new FakeClock();
    const budget = createRetryBudget({ clock, budgetRatio: 0.5, budgetPerSecondMin: 0 });
    expect(budget.take()).toBe(false);
    budget.served();
    budget.served();
    expect(budget.left()).toBe(1);
    expect([budget.take(), budget.take()]).toEqual([true, false]);
    const floor = createRetryBudget({ clock, budgetRatio: 0, budgetPerSecondMin: 0.1 });
    expect([floor.take(), floor.take()]).toEqual([true, false]);
    clock.advance(10_000);
    expect(floor.take()).toBe(true);
  });
});
