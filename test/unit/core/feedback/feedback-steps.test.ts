import { describe, expect, it } from "vitest";
import {
  FeedbackSteps,
  growthMsMax,
  type StepView,
  stepMsMax,
} from "../../../../src/core/feedback/feedback-steps.js";

/** A fleet whose Envoys have all taken their shares of 100 and use 50, a second after a step. */
function viewOf(given: Partial<StepView> = {}): StepView {
  return {
    nowMs: 1_000,
    limit: 100,
    inFlight: 50,
    fromMs: 900,
    obeyedSinceMs: 700,
    isPaced: true,
    nodeCount: 2,
    rttMs: 50,
    ...given,
  };
}

describe("FeedbackSteps", () => {
  it.each([
    { before: 100, limit: 76, isStep: false },
    { before: 100, limit: 75, isStep: false },
    { before: 100, limit: 74, isStep: true },
    { before: 100, limit: 110, isStep: false },
    { before: 100, limit: 111, isStep: true },
  ])("calls it $isStep that a step goes from $before to $limit", ({ before, limit, isStep }) => {
    const steps = new FeedbackSteps();
    expect([steps.note(before, limit, 0), steps.isAwaiting]).toEqual([isStep, isStep]);
    expect(steps.isClean(0)).toBe(!isStep);
  });

  it("takes a step down for done two round trips after all Envoys have come to it", () => {
    const steps = new FeedbackSteps();
    steps.note(200, 100, 0);
    steps.update(viewOf());
    expect([steps.isClean(799), steps.isClean(800)]).toEqual([false, true]);
  });

  it.each([
    { title: "the limit is still on its way", given: { isPaced: false } },
    { title: "an Envoy has not taken its share", given: { obeyedSinceMs: undefined } },
    { title: "what was let in before is still there", given: { inFlight: 101 } },
  ])("waits while $title, and six seconds at most", ({ given }) => {
    const steps = new FeedbackSteps();
    steps.begin(0);
    steps.update(viewOf({ ...given, nowMs: stepMsMax - 1 }));
    expect(steps.isAwaiting).toBe(true);
    steps.update(viewOf({ ...given, nowMs: stepMsMax }));
    expect([steps.isClean(stepMsMax + 99), steps.isClean(stepMsMax + 100)]).toEqual([false, true]);
  });

  it("counts from when more was in work for the last time", () => {
    const steps = new FeedbackSteps();
    steps.begin(0);
    steps.update(viewOf({ inFlight: 300 }));
    steps.update(viewOf({ nowMs: 2_000 }));
    expect([steps.isClean(1_099), steps.isClean(1_100)]).toEqual([false, true]);
  });

  it("lets one request an Envoy be in work, below which no share goes", () => {
    const steps = new FeedbackSteps();
    steps.begin(0);
    steps.update(viewOf({ limit: 1, nodeCount: 3, inFlight: 3 }));
    expect(steps.isAwaiting).toBe(false);
  });

  it("takes a step up for done when most of the room is in use, or when nobody wants it", () => {
    const steps = new FeedbackSteps();
    steps.note(50, 100, 0);
    steps.update(viewOf({ inFlight: 94, nowMs: growthMsMax - 1 }));
    expect(steps.isAwaiting).toBe(true);
    steps.update(viewOf({ inFlight: 95, nowMs: growthMsMax - 1, fromMs: 3_000 }));
    expect([steps.isClean(3_049), steps.isClean(3_050)]).toEqual([false, true]);
    steps.note(50, 100, 10_000);
    steps.update(viewOf({ nowMs: 10_000 + growthMsMax }));
    expect(steps.isClean(10_000 + growthMsMax)).toBe(true);
  });

  it("adds small steps up together, from the least limit since room was waited for", () => {
    const steps = new FeedbackSteps();
    expect(steps.note(100, 109, 0)).toBe(false);
    expect(steps.note(109, 105, 0)).toBe(false);
    expect(steps.note(105, 111, 0)).toBe(true);
    steps.update(viewOf({ limit: 111, inFlight: 111 }));
    expect(steps.note(111, 120, 1_000)).toBe(false);
    expect(steps.note(120, 103, 1_000)).toBe(false);
    expect(steps.note(103, 113, 1_000)).toBe(false);
    expect(steps.note(113, 114, 1_000)).toBe(true);
    expect(steps.isAwaiting).toBe(true);
  });

  it("forgets room to grow at a step down, and sees none while one is on its way", () => {
    const steps = new FeedbackSteps();
    steps.note(50, 100, 0);
    steps.begin(500);
    steps.note(50, 100, 600);
    steps.update(viewOf());
    expect(steps.isAwaiting).toBe(false);
  });
});
