import { describe, expect, it } from "vitest";
import type { WindowedSample } from "../../../../src/core/concurrency/concurrency-limit.js";
import { FeedbackNodes } from "../../../../src/core/feedback/feedback-nodes.js";
import { defaultLoopTimes } from "../../../../src/core/feedback/feedback-settings.js";
import {
  FeedbackStart,
  type StartView,
  startTotals,
} from "../../../../src/core/feedback/feedback-start.js";
import { nodeReportOf } from "../../../support/node-reports.js";

/** Two Envoys of 200 before 100 servers of 50 ms, 80 of them busy, for a second. */
function viewOf(nowMs: number, given: Partial<StartView> = {}): StartView {
  const { inUse = 80, rttMs = 50 } = given;
  return {
    nowMs,
    inUse,
    roomCount: 1.5 * inUse,
    overflowPerSecond: 0,
    measured: { inFlight: inUse, rps: 1_600 },
    configuredCount: 400,
    joinedMs: 1_000,
    rttMs,
    window: windowOf({ rttMs, endMs: nowMs }),
    ...given,
  };
}

function windowOf(given: Partial<WindowedSample>): WindowedSample {
  const window = { rttMs: 50, sampleCount: 1_600, droppedCount: 0, inFlightMax: 80 };
  return { ...window, servedPerMs: 1.6, endMs: 0, ...given };
}

/** A start that has followed for five seconds what `viewOf` has by default. */
function followed(): FeedbackStart {
  const start = new FeedbackStart(50);
  for (let second = 1; second <= 5; second += 1) start.look(viewOf(1_000 * second));
  expect(start.isOver).toBe(false);
  return start;
}

describe("FeedbackStart", () => {
  it("follows what is in use, and no further than the configured defaults", () => {
    const start = new FeedbackStart(50);
    expect(start.limit).toBe(50);
    start.look(viewOf(1_000, { inUse: 10, measured: { inFlight: 10, rps: 200 } }));
    expect(start.limit).toBe(50);
    start.look(viewOf(2_000));
    expect(start.limit).toBe(120);
    start.look(viewOf(3_000, { inUse: 300, measured: { inFlight: 300, rps: 6_000 } }));
    expect(start.limit).toBe(400);
    start.look(viewOf(4_000));
    expect(start.limit).toBe(400);
    expect(start.isOver).toBe(false);
  });

  it("ends at three times what is in use, ten seconds after the last Envoy has joined", () => {
    const start = followed();
    start.look(viewOf(10_999));
    expect(start.isOver).toBe(false);
    start.look(viewOf(12_000, { joinedMs: 11_000 }));
    expect(start.isOver).toBe(false);
    start.look(viewOf(21_000, { joinedMs: 11_000, window: undefined }));
    expect(start.isOver).toBe(false);
    start.look(viewOf(22_000, { joinedMs: 11_000 }));
    expect(start).toMatchObject({ isOver: true, limit: 240 });
  });

  it.each<{ title: string; given: Partial<StartView>; seconds?: number }>([
    { title: "a latency that has doubled", given: { rttMs: 101 } },
    {
      title: "requests without a response",
      given: { window: windowOf({ droppedCount: 200 }), inUse: 40 },
    },
    {
      title: "Envoys that refuse for three seconds",
      given: { overflowPerSecond: 200, inUse: 40, measured: { inFlight: 40, rps: 800 } },
      seconds: 3,
    },
    {
      title: "more in flight than was served, in two reports",
      given: { inUse: 160, measured: { inFlight: 160, rps: 1_600 } },
      seconds: 2,
    },
    {
      title: "more in flight than was served, while Envoys refuse",
      given: {
        inUse: 130,
        measured: { inFlight: 130, rps: 1_600 },
        overflowPerSecond: 200,
      },
    },
    {
      title: "nothing that ends, while Envoys refuse",
      given: { measured: { inFlight: 0, rps: 0 }, overflowPerSecond: 9, window: undefined },
    },
  ])("ends at its least limit by $title", ({ given, seconds = 1 }) => {
    const start = followed();
    for (let second = 1; second <= seconds; second += 1) {
      expect(start.isOver).toBe(false);
      start.look(viewOf(5_000 + 1_000 * second, given));
    }
    expect(start).toMatchObject({ isOver: true, limit: 50 });
  });

  it.each<{ title: string; given: Partial<StartView> }>([
    {
      title: "a burst of one report",
      given: { inUse: 160, measured: { inFlight: 160, rps: 1_600 } },
    },
    { title: "few refusals", given: { overflowPerSecond: 150 } },
    { title: "a slower window of few requests", given: { inUse: 40, rttMs: 200 } },
    {
      title: "nothing that ends, where nobody is refused",
      given: { measured: { inFlight: 0, rps: 0 }, window: undefined, rttMs: undefined },
    },
  ])("goes on at $title", ({ given }) => {
    const start = followed();
    start.look(viewOf(6_000, given));
    start.look(viewOf(7_000));
    expect(start.isOver).toBe(false);
  });

  /** Requests of two seconds: those that end in the first second are the short ones. */
  it("does not take the first requests of a slow service for a queue", () => {
    const start = new FeedbackStart(20);
    const young = (nowMs: number, inUse: number, rttMs: number): void =>
      start.look(viewOf(nowMs, { inUse, rttMs, measured: { inFlight: inUse, rps: 20 } }));
    young(1_000, 31, 450);
    young(2_000, 50, 900);
    young(3_000, 62, 1_500);
    expect(start.isOver).toBe(false);
  });

  it("knows since when requests are in flight, although nothing was measured yet", () => {
    const start = new FeedbackStart(20);
    const nothing = { measured: { inFlight: 0, rps: 0 }, rttMs: undefined, window: undefined };
    start.look(viewOf(1_000, { inUse: 100, ...nothing }));
    start.look(viewOf(2_000, { inUse: 150, ...nothing }));
    expect(start.isOver).toBe(false);
    // Two round trips of 900 ms have passed, in which 18 were served.
    const queue = { inUse: 200, rttMs: 900, measured: { inFlight: 200, rps: 20 } };
    start.look(viewOf(3_000, queue));
    expect(start.isOver).toBe(true);
    expect(start.limit).toBe(20);
  });
});

describe("startTotals()", () => {
  it("counts a full Envoy with its share, and rates of those that told one", () => {
    const nodes = new FeedbackNodes(defaultLoopTimes);
    nodes.take(nodeReportOf({ nodeId: "edge-1", inFlight: 16, rps: 320 }), 0);
    nodes.take(nodeReportOf({ nodeId: "edge-2", inFlight: 9, rps: 0 }), 0);
    nodes.take(nodeReportOf({ nodeId: "edge-3", inFlight: 0, rps: 0 }), 0);
    expect(startTotals(nodes, 0)).toEqual({
      measured: { inFlight: 16, rps: 320 },
      roomCount: 16 + 16 + 1 + 9 + 12 + 1 + 1,
    });
    // Reports that are too old say nothing of now.
    expect(startTotals(nodes, 60_000).roomCount).toBe(0);
  });
});
