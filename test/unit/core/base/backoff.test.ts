import { describe, expect, it } from "vitest";
import { type Backoff, backoffMs, backoffMsMin } from "../../../../src/core/base/backoff.js";

const plain: Backoff = { initialMs: 1_000, maxMs: 60_000, growthFactor: 2, isJittered: false };

describe("backoffMs()", () => {
  it("grows from the first wait to the longest one, and stays there", () => {
    const waits = [1, 2, 3, 6, 7, 8, 2_000].map((count) => backoffMs(plain, count, 0.3));
    expect(waits).toEqual([1_000, 2_000, 4_000, 32_000, 60_000, 60_000, 60_000]);
  });

  it("takes a random part of it with jitter, at least half and never more than it", () => {
    const jittered = { ...plain, isJittered: true };
    expect(backoffMs(jittered, 3, 0)).toBe(2_000);
    expect(backoffMs(jittered, 3, 0.5)).toBe(3_000);
    expect(backoffMs(jittered, 3, 0.999_999)).toBeCloseTo(4_000, 1);
  });

  it("is never shorter than its floor, whatever is configured", () => {
    expect(backoffMs({ ...plain, initialMs: 0 }, 5, 0.5)).toBe(backoffMsMin);
    expect(backoffMs({ ...plain, maxMs: 0 }, 5, 0.5)).toBe(backoffMsMin);
  });

  it("lets the longest wait win over the first", () => {
    expect(backoffMs({ ...plain, initialMs: 9_000, maxMs: 3_000 }, 1, 0)).toBe(3_000);
  });
});
