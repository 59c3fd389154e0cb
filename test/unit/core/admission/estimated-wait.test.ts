import { describe, expect, it } from "vitest";
import {
  estimatedWaitMs,
  isOverWaitCap,
  type QueueState,
  queuedCount,
  type SigmoidSettings,
  sigmoidRejectRatio,
  type WaitBound,
  waitBoundMs,
} from "../../../../src/core/admission/estimated-wait.js";

function state(waitingCount: number, changes: Partial<QueueState> = {}): QueueState {
  return { waitingCount, inFlightCount: 10, limit: 10, serviceMs: 1_000, ...changes };
}

describe("estimatedWaitMs()", () => {
  it.each([
    { story: "nobody waits", queue: state(0), count: 0, waitMs: 0 },
    { story: "slots are free", queue: state(0, { inFlightCount: 3 }), count: 0, waitMs: 0 },
    { story: "40 wait for 10", queue: state(40, { serviceMs: 50 }), count: 40, waitMs: 200 },
    { story: "the limit fell", queue: state(5, { limit: 4 }), count: 11, waitMs: 2_750 },
    { story: "one slot", queue: state(3, { limit: 1, inFlightCount: 1 }), count: 3, waitMs: 3_000 },
    {
      story: "nothing measured",
      queue: state(3, { serviceMs: undefined }),
      count: 3,
      waitMs: undefined,
    },
    {
      story: "nothing measured, but nobody waits either",
      queue: state(0, { serviceMs: undefined }),
      count: 0,
      waitMs: 0,
    },
  ])("is $waitMs ms where $story", ({ queue, count, waitMs }) => {
    expect(queuedCount(queue)).toBe(count);
    expect(estimatedWaitMs(queue)).toBe(waitMs);
  });
});

describe("waitBoundMs()", () => {
  it("is a time, or so many service times", () => {
    expect(waitBoundMs({ kind: "duration", ms: 250 }, undefined)).toBe(250);
    expect(waitBoundMs({ kind: "serviceTimes", multiple: 100 }, 20)).toBe(2_000);
    expect(waitBoundMs({ kind: "serviceTimes", multiple: 100 }, undefined)).toBeUndefined();
  });
});

describe("isOverWaitCap()", () => {
  const seconds30: WaitBound = { kind: "duration", ms: 30_000 };
  it.each<{ max: WaitBound | undefined; queue: QueueState; is: boolean }>([
    { max: seconds30, queue: state(299), is: false },
    { max: seconds30, queue: state(300), is: true },
    { max: seconds30, queue: state(5_000, { serviceMs: undefined }), is: false },
    { max: { kind: "serviceTimes", multiple: 2 }, queue: state(19), is: false },
    { max: { kind: "serviceTimes", multiple: 2 }, queue: state(20), is: true },
    { max: undefined, queue: state(1e9), is: false },
  ])("is $is at $queue.waitingCount waiting and a cap of $max", ({ max, queue, is }) => {
    expect(isOverWaitCap({ max }, queue)).toBe(is);
  });
});

describe("sigmoidRejectRatio()", () => {
  const sigmoid: SigmoidSettings = {
    midpoint: { kind: "duration", ms: 28_000 },
    slopePerSecond: 0.23,
  };

  it.each([
    { waiting: 1, ratio: 0.0016 },
    { waiting: 220, ratio: 0.201 },
    { waiting: 280, ratio: 0.5 },
    { waiting: 340, ratio: 0.799 },
    { waiting: 1_000, ratio: 1 },
    { waiting: 10_000_000, ratio: 1 },
  ])("is $ratio with $waiting waiting for 10 slots of a second", ({ waiting, ratio }) => {
    expect(sigmoidRejectRatio(sigmoid, state(waiting))).toBeCloseTo(ratio, 3);
  });

  it("counts its midpoint in service times where the policy does", () => {
    const scaled: SigmoidSettings = { ...sigmoid, midpoint: { kind: "serviceTimes", multiple: 4 } };
    expect(sigmoidRejectRatio(scaled, state(40))).toBe(0.5);
    expect(sigmoidRejectRatio(scaled, state(40, { serviceMs: 7_000 }))).toBe(0.5);
  });

  it("refuses nobody where nobody waits, whatever the curve says", () => {
    const flat: SigmoidSettings = { midpoint: { kind: "duration", ms: 10 }, slopePerSecond: 1 };
    expect(sigmoidRejectRatio(flat, state(1))).toBeGreaterThan(0.49);
    expect(sigmoidRejectRatio(flat, state(0))).toBe(0);
  });

  it("refuses nobody while nothing is known", () => {
    expect(sigmoidRejectRatio(sigmoid, state(400, { serviceMs: undefined }))).toBe(0);
  });
});
