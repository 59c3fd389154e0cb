import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type RetryDelaySettings,
  type RetryReason,
  retryDelayMs,
} from "../../../../src/core/calls/retry-delay.js";
import { propertyRuns } from "../../../support/seeds.js";

const jitters: readonly RetryDelaySettings["jitter"][] = [
  "law",
  "full",
  "equal",
  "decorrelated",
  "none",
];

/** A wait with a base of 100 ms and at most 10 s. */
function delayMs(
  jitter: RetryDelaySettings["jitter"],
  reason: Partial<RetryReason>,
  draw: number,
): number {
  const settings = { jitter, baseMs: 100, maxMs: 10_000 };
  return retryDelayMs(settings, { retryIndex: 0, ...reason }, draw);
}

describe("retryDelayMs()", () => {
  it.each([
    { jitter: "law", n: 0, waitLaw: "quota", draw: 0, ms: 1_000 },
    { jitter: "law", n: 3, waitLaw: "quota", draw: 0.5, ms: 8_500 },
    { jitter: "law", n: 4, waitLaw: "quota", draw: 0.9, ms: 16_900 },
    { jitter: "law", n: 5, waitLaw: "quota", draw: 0, ms: 30_000 },
    { jitter: "law", n: 0, waitLaw: "overload", draw: 0, ms: 2_000 },
    { jitter: "law", n: 3, waitLaw: "overload", draw: 0.5, ms: 17_000 },
    { jitter: "law", n: 3, waitLaw: undefined, draw: 0.5, ms: 17_000 },
    { jitter: "law", n: 5, waitLaw: "overload", draw: 0, ms: 60_000 },
    { jitter: "full", n: 3, draw: 0.5, ms: 400 },
    { jitter: "full", n: 0, draw: 0, ms: 0 },
    { jitter: "full", n: 7, draw: 0.5, ms: 5_000 },
    { jitter: "equal", n: 3, draw: 0.5, ms: 600 },
    { jitter: "equal", n: 3, draw: 0, ms: 400 },
    { jitter: "none", n: 3, draw: 0.5, ms: 800 },
  ] as const)("waits $ms ms by $jitter before retry $n after draw $draw", (row) => {
    const { jitter, n, draw, ms, ...rest } = row;
    expect(delayMs(jitter, { retryIndex: n, ...rest }, draw)).toBeCloseTo(ms, 6);
  });

  it("draws between the base and three times the last wait where it is decorrelated", () => {
    expect(delayMs("decorrelated", { lastDelayMs: 300 }, 0.5)).toBe(500);
    expect(delayMs("decorrelated", { lastDelayMs: 300 }, 0)).toBe(100);
    // The first wait has none before it.
    expect(delayMs("decorrelated", {}, 0.5)).toBe(200);
    expect(delayMs("decorrelated", { lastDelayMs: 9_000 }, 0.99)).toBe(10_000);
    // A last wait of nothing, such as of another attempt.
    expect(delayMs("decorrelated", { lastDelayMs: 0 }, 0.99)).toBe(100);
  });

  it.each(jitters)(
    "waits by %s as long as the service asked for, even above the longest",
    (one) => {
      expect(delayMs(one, { retryAfterMs: 45_000 }, 0.5)).toBe(45_000);
      expect(delayMs(one, { retryAfterMs: 0 }, 0.5)).toBe(delayMs(one, {}, 0.5));
    },
  );

  it("lets the longest wait win over the first", () => {
    const settings = { jitter: "none", baseMs: 9_000, maxMs: 3_000 } as const;
    expect(retryDelayMs(settings, { retryIndex: 0 }, 0)).toBe(3_000);
  });

  it("stays within its bounds for any retry, and grows with the draw", () => {
    const reasons = fc.record({
      retryIndex: fc.oneof(fc.nat(10), fc.nat(2 ** 31 - 1)),
      waitLaw: fc.constantFrom("quota", "overload", undefined),
      retryAfterMs: fc.option(fc.nat(100_000), { nil: undefined }),
      lastDelayMs: fc.option(fc.nat(20_000), { nil: undefined }),
    });
    const draws = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    fc.assert(
      fc.property(fc.constantFrom(...jitters), reasons, draws, draws, (jitter, reason, a, b) => {
        const ms = delayMs(jitter, reason, a);
        const asked = reason.retryAfterMs ?? 0;
        const longest = jitter !== "law" ? 10_000 : reason.waitLaw === "quota" ? 30_000 : 60_000;
        expect(ms).toBeGreaterThanOrEqual(asked);
        expect(ms).toBeLessThanOrEqual(Math.max(asked, longest));
        if (a <= b) expect(ms).toBeLessThanOrEqual(delayMs(jitter, reason, b));
      }),
      propertyRuns(500),
    );
  });
});
