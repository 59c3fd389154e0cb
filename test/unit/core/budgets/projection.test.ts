import { describe, expect, it } from "vitest";
import { amountMax } from "../../../../src/core/budgets/account.js";
import { projectWindow } from "../../../../src/core/budgets/projection.js";

const dayUs = 86_400_000_000;

/** A month of 30 days, of which so many have passed. */
function project(days: number, spent: number, { before = 0, capacity = 1_000 } = {}) {
  const window = { startUs: 5 * dayUs, endUs: 35 * dayUs };
  const nowUs = window.startUs + days * dayUs;
  const found = projectWindow({ spent, spentBefore: before, capacity }, window, nowUs);
  const { amount, exhaustedUs } = found;
  return [amount, exhaustedUs === undefined ? undefined : (exhaustedUs - window.startUs) / dayUs];
}

describe("projectWindow()", () => {
  it("goes on at the mean rate of the window", () => {
    expect(project(10, 300)).toEqual([900, undefined]);
    expect(project(15, 600)).toEqual([1_200, 25]);
    expect(project(30, 600)).toEqual([600, undefined]);
  });

  it("takes the window before for what is missing of the first tenth", () => {
    expect(project(1, 20, { before: 900 })).toEqual([793, undefined]);
    // Nothing before: one busy day is a third of the tenth.
    expect(project(1, 30)).toEqual([320, undefined]);
    expect(project(0, 0, { before: 3_000 })).toEqual([3_000, 10]);
  });

  it("is already exhausted, or never", () => {
    expect(project(10, 1_200)).toEqual([3_600, 10]);
    expect(project(10, 0)).toEqual([0, undefined]);
    expect(project(10, 0, { capacity: 0 })).toEqual([0, undefined]);
  });

  it("is never above the largest amount, and stays inside a window that is over", () => {
    expect(project(0, amountMax)).toEqual([amountMax, 0]);
    expect(project(31, 10)).toEqual([10, undefined]);
    expect(project(-1, 10, { before: 300 })[0]).toBe(410);
  });
});
