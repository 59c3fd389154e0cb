import { describe, expect, it } from "vitest";
import { pacedLimit } from "../../../../src/core/feedback/feedback-pace.js";
import { defaultLimitPace } from "../../../../src/core/feedback/feedback-settings.js";

describe("pacedLimit()", () => {
  it.each([
    { limit: 100, wanted: 40, elapsedMs: 1_000, next: 40, why: "a probe at once" },
    { limit: 100, wanted: 10, elapsedMs: 1_000, next: 30, why: "no more than seven tenths off" },
    { limit: 30, wanted: 10, elapsedMs: 1_000, next: 10, why: "and then the rest" },
    { limit: 40, wanted: 160, elapsedMs: 1_000, next: 81, why: "twice of it, and one" },
    { limit: 1, wanted: 160, elapsedMs: 1_000, next: 3, why: "from the least" },
    { limit: 40, wanted: 160, elapsedMs: 500, next: 60, why: "half of the time, half of the way" },
    { limit: 40, wanted: 160, elapsedMs: 0, next: 40, why: "no time at all" },
    { limit: 40, wanted: 1, elapsedMs: -5, next: 40, why: "nor less than that" },
    { limit: 100, wanted: 104, elapsedMs: 1_000, next: 100, why: "no change for noise" },
    { limit: 100, wanted: 96, elapsedMs: 1_000, next: 100, why: "nor downwards" },
    { limit: 100, wanted: 105, elapsedMs: 1_000, next: 105, why: "from a twentieth on" },
    { limit: 10, wanted: 11, elapsedMs: 1_000, next: 11, why: "of small ones, each" },
    { limit: 2, wanted: 1, elapsedMs: 1_000, next: 1, why: "down to the least" },
  ])("goes from $limit to $next for $wanted after $elapsedMs ms: $why", (step) => {
    const paced = pacedLimit({ familiar: 0, ...step }, "gradient", defaultLimitPace);
    expect(paced).toBe(step.next);
  });

  it.each([
    { limit: 10, wanted: 36, familiar: 36, next: 36, why: "all the way" },
    { limit: 10, wanted: 36, familiar: 30, next: 30, why: "so far" },
    { limit: 10, wanted: 36, familiar: 15, next: 21, why: "no further than it would in any case" },
    { limit: 10, wanted: 18, familiar: 36, next: 18, why: "no further than is wanted" },
    { limit: 40, wanted: 10, familiar: 40, next: 12, why: "nothing of it downwards" },
  ])("goes back from $limit to $familiar for $wanted at once: $why", ({ next, ...step }) => {
    expect(pacedLimit({ ...step, elapsedMs: 1_000 }, "gradient", defaultLimitPace)).toBe(next);
  });

  it.each(["fixed", "signal"] as const)("does exactly what %s says", (law) => {
    const step = { limit: 100, wanted: 101, familiar: 0, elapsedMs: 1_000 };
    expect(pacedLimit(step, law, defaultLimitPace)).toBe(101);
  });
});
