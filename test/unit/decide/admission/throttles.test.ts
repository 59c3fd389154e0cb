import { describe, expect, it } from "vitest";
import {
  Throttles,
  throttleBytes,
  throttledCallersBytesMax,
} from "../../../../src/decide/admission/throttles.js";

const settings = { k: 2, per: "caller", memoryMs: 30_000 } as const;

describe("Throttles", () => {
  it.each([
    ["short", 12],
    ["as long as a header may be", 60_000],
  ])("keeps no more callers than its bound, with names that are %s", (_, length) => {
    const throttles = new Throttles(settings);
    const fitting = throttledCallersBytesMax / (throttleBytes + 2 * length);
    for (let i = 0; i < 20 * fitting; i += 1) throttles.refused(String(i).padStart(length, "c"), 0);
    expect(throttles.callerCount).toBeLessThanOrEqual(fitting);
    expect(throttles.callerCount).toBeGreaterThan(fitting / 4);
  });

  it("counts no caller by itself where the policy has one count for the service", () => {
    const throttles = new Throttles({ ...settings, per: "service" });
    for (let i = 0; i < 50; i += 1) throttles.refused("a", 0);
    expect(throttles.callerCount).toBe(0);
    expect(throttles.rejects("b", 0.9, 0)).toBe(true);
  });

  it("knows a caller's good days when it has a bad one", () => {
    const throttles = new Throttles(settings);
    for (let i = 0; i < 50; i += 1) throttles.accepted("a", 0);
    throttles.refused("a", 0);
    expect(throttles.rejects("a", 0, 0)).toBe(false);
  });
});
