import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { InOrder } from "../../../src/simulate/in-order.js";
import { propertyRuns } from "../../support/seeds.js";

function sortedBy(heldMax: number, times: readonly number[]) {
  const order = new InOrder<{ readonly timeUs: number }>(heldMax);
  const out: number[] = [];
  for (const timeUs of times) {
    const next = order.push({ timeUs });
    if (next !== undefined) out.push(next.timeUs);
  }
  for (const { timeUs } of order.drain()) out.push(timeUs);
  return { out, lateCount: order.lateCount };
}

describe("InOrder", () => {
  it("gives everything back, in order where nothing is further off than it holds", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(50)), fc.integer({ min: 1, max: 10 }), (times, heldMax) => {
        const { out, lateCount } = sortedBy(heldMax, times);
        const inOrder = times.toSorted((one, other) => one - other);
        expect(out.toSorted((one, other) => one - other)).toEqual(inOrder);
        if (lateCount === 0) expect(out).toEqual(inOrder);
        if (times.length <= heldMax) expect(lateCount).toBe(0);
      }),
      propertyRuns(100),
    );
  });

  it("counts what comes too late", () => {
    expect(sortedBy(2, [5, 6, 7, 8, 1, 9])).toEqual({ out: [5, 6, 1, 7, 8, 9], lateCount: 1 });
  });
});
