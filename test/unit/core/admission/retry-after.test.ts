import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  estimatedSecondsMax,
  type RetryWait,
  retryAfterSeconds,
  retryAfterSecondsMax,
} from "../../../../src/core/admission/retry-after.js";
import { propertyRuns } from "../../../support/seeds.js";

const plain = { retryAfterSecondsMin: 1, retryAfterJitterRatio: 0 };
const jittered = { retryAfterSecondsMin: 1, retryAfterJitterRatio: 0.5 };

describe("retryAfterSeconds()", () => {
  it.each<{ wait: RetryWait; min: number; seconds: number }>([
    { wait: { kind: "unknown" }, min: 1, seconds: 1 },
    { wait: { kind: "unknown" }, min: 5, seconds: 5 },
    { wait: { kind: "unknown" }, min: 0, seconds: 1 },
    { wait: { kind: "estimated", ms: 0 }, min: 1, seconds: 1 },
    { wait: { kind: "estimated", ms: 1_001 }, min: 1, seconds: 2 },
    { wait: { kind: "estimated", ms: 9_200 }, min: 3, seconds: 10 },
    { wait: { kind: "estimated", ms: 9_200 }, min: 30, seconds: 30 },
    { wait: { kind: "estimated", ms: 600_000 }, min: 1, seconds: estimatedSecondsMax },
    { wait: { kind: "estimated", ms: Infinity }, min: 1, seconds: estimatedSecondsMax },
    { wait: { kind: "known", ms: 86_400_000 }, min: 1, seconds: 86_400 },
    { wait: { kind: "known", ms: 1e15 }, min: 1, seconds: retryAfterSecondsMax },
  ])("says $seconds s for $wait, at least $min", ({ wait, min, seconds }) => {
    expect(retryAfterSeconds({ ...plain, retryAfterSecondsMin: min }, wait, 0.999)).toBe(seconds);
  });

  it("spreads over whole seconds, each as likely", () => {
    const wait: RetryWait = { kind: "estimated", ms: 10_000 };
    const draws = Array.from({ length: 600 }, (_, i) => i / 600);
    const seconds = draws.map((draw) => retryAfterSeconds(jittered, wait, draw));
    for (const value of [10, 11, 12, 13, 14, 15]) {
      expect(seconds.filter((one) => one === value)).toHaveLength(100);
    }
  });

  it("spreads the shortest, too", () => {
    const wait: RetryWait = { kind: "unknown" };
    expect([0, 0.4, 0.6, 0.99].map((draw) => retryAfterSeconds(jittered, wait, draw))).toEqual([
      1, 1, 2, 2,
    ]);
  });

  it("never says less than the wait, nor a broken second, nor more than the jitter allows", () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 1e9, noNaN: true }),
        fc.double({ min: 0, max: 2, noNaN: true }),
        fc.double({ min: 0, max: 0.999_999, noNaN: true }),
        (ms, retryAfterJitterRatio, draw) => {
          const settings = { retryAfterSecondsMin: 1, retryAfterJitterRatio };
          const seconds = retryAfterSeconds(settings, { kind: "known", ms }, draw);
          const base = Math.max(1, Math.ceil(ms / 1_000));
          expect(Number.isInteger(seconds)).toBe(true);
          expect(seconds).toBeGreaterThanOrEqual(base);
          expect(seconds).toBeLessThanOrEqual(base + Math.ceil(base * retryAfterJitterRatio));
        },
      ),
      propertyRuns(100),
    );
  });
});
