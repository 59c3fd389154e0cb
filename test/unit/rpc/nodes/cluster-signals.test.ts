import { describe, expect, it } from "vitest";
import {
  ClusterSignals,
  clockStepMs,
  metricsFreshMs,
} from "../../../../src/rpc/nodes/cluster-signals.js";
import type { ClusterCounter } from "../../../../src/rpc/nodes/metrics-message.js";

const cluster = "orders";

function count(counter: ClusterCounter, delta: number, stampMs = 0) {
  return { kind: "count", cluster, counter, series: counter, delta, stampMs } as const;
}

function inFlight(value: number, stampMs = 0) {
  return { kind: "inFlight", cluster, value, stampMs } as const;
}

function load(fields: {
  readonly inFlight?: number;
  readonly successCount?: number;
  readonly errorCount?: number;
  readonly dropCount?: number;
}) {
  const none = { inFlight: 0, successCount: 0, errorCount: 0, dropCount: 0 };
  return { cluster, ...none, ...fields, coveredMs: 1_000 };
}

function highRemaining(value: number) {
  return { kind: "highRemaining", cluster, value, stampMs: 0 } as const;
}

describe("ClusterSignals", () => {
  it.each([
    { what: "is undefined where the threshold is unknown", steps: [[undefined, 4, undefined]] },
    { what: "is what the threshold has lost", steps: [[10, 4, 6]] },
    { what: "is none where more is left than there is", steps: [[10, 1_024, 0]] },
    {
      what: "stays where nothing moved, whatever the threshold",
      steps: [
        [5, 5, 0],
        [20, 5, 0],
        [40, 5, 0],
      ],
    },
    {
      what: "is by the threshold of before where that has just changed",
      steps: [
        [5, 4, 1],
        [20, 5, 0],
      ],
    },
    {
      what: "grows where all is in use",
      steps: [
        [5, 0, 5],
        [20, 0, 5],
        [20, 0, 20],
      ],
    },
  ])("at HIGH $what", ({ steps }) => {
    const signals = new ClusterSignals();
    signals.addSample(inFlight(100), 0);
    for (const [threshold, remaining = 0, expected] of steps) {
      signals.addSample(highRemaining(remaining), 0);
      expect(signals.take(0, threshold).highInFlight).toBe(expected);
    }
  });

  it("has no more at HIGH than at all, and says nothing of it by load reports", () => {
    const signals = new ClusterSignals();
    signals.addSample(inFlight(3), 0);
    signals.addSample(highRemaining(2), 0);
    expect(signals.take(0, 10).highInFlight).toBe(3);
    const silent = new ClusterSignals();
    silent.addLoad(load({ inFlight: 4 }), 0);
    expect(silent.take(0, 10).highInFlight).toBeUndefined();
  });

  it("takes Envoy's own refusals out of what failed and of what ended", () => {
    const signals = new ClusterSignals();
    signals.addSample(count("completed", 100), 0);
    signals.addSample(count("failed", 12), 0);
    signals.addSample(count("overflowed", 7), 0);
    signals.addSample(count("dropped", 2), 0);
    signals.addSample(inFlight(5), 0);
    signals.addCovered(500);
    expect(signals.take(0)).toMatchObject({
      inFlight: 5,
      endedCount: 91,
      errorCount: 3,
      dropCount: 9,
      overflowCount: 7,
      coveredMs: 500,
    });
  });

  it("takes what was dropped out of the errors of load reports", () => {
    const signals = new ClusterSignals();
    signals.addLoad(load({ inFlight: 4, successCount: 50, errorCount: 105, dropCount: 102 }), 0);
    expect(signals.take(0)).toMatchObject({
      inFlight: 4,
      endedCount: 53,
      errorCount: 3,
      dropCount: 102,
      coveredMs: 1_000,
      latency: { count: 0 },
    });
  });

  it("has no fewer than no errors, whatever was counted where", () => {
    const signals = new ClusterSignals();
    signals.addLoad(load({ errorCount: 1, dropCount: 5 }), 0);
    expect(signals.take(0)).toMatchObject({ errorCount: 0, endedCount: 0 });
    signals.addSample(count("overflowed", 5), 0);
    expect(signals.take(0)).toMatchObject({ errorCount: 0, endedCount: 0 });
  });

  it("counts anew after each report, and repeats what is in work", () => {
    const signals = new ClusterSignals();
    signals.addSample(count("failed", 3), 10);
    signals.addSample(inFlight(5), 10);
    signals.take(20);
    expect(signals.take(30)).toMatchObject({ errorCount: 0, inFlight: 5, atMs: 10 });
  });

  it("believes statistics while they come, and then load reports", () => {
    const signals = new ClusterSignals();
    signals.addSample(inFlight(5), 0);
    signals.addLoad(load({ inFlight: 9 }), 0);
    expect(signals.take(metricsFreshMs).inFlight).toBe(5);
    expect(signals.take(metricsFreshMs + 1).inFlight).toBe(9);
    signals.addSample(inFlight(6), 10_000);
    expect(signals.take(10_000).inFlight).toBe(6);
  });

  it("has nothing in work when a load report does not speak of it, once one did", () => {
    const signals = new ClusterSignals();
    signals.addIdleLoad(1_000, 5);
    expect(signals.atMs).toBe(Number.NEGATIVE_INFINITY);
    signals.addLoad(load({ inFlight: 4 }), 10);
    signals.addIdleLoad(1_000, 20);
    expect(signals.take(20)).toMatchObject({ inFlight: 0, atMs: 20, coveredMs: 2_000 });
  });

  it("counts a number once that comes twice, and none that was overtaken", () => {
    const signals = new ClusterSignals();
    expect(signals.addSample(count("completed", 3, 2_000), 0)).toBe(true);
    expect(signals.addSample(count("completed", 3, 2_000), 0)).toBe(false);
    expect(signals.addSample(count("completed", 3, 1_000), 0)).toBe(false);
    expect(signals.addSample(count("completed", 4, 3_000), 0)).toBe(true);
    expect(signals.addSample(inFlight(1, 3_000), 0)).toBe(true);
    expect(signals.addSample(inFlight(9, 2_000), 0)).toBe(false);
    expect(signals.take(0)).toMatchObject({ endedCount: 7, inFlight: 1 });
  });

  it("counts two statistics of one kind, each by its own stamps", () => {
    const signals = new ClusterSignals();
    const active = { ...count("overflowed", 1, 5), series: "upstream_rq_active_overflow" };
    const pending = { ...count("overflowed", 2, 5), series: "upstream_rq_pending_overflow" };
    signals.addSample(active, 0);
    signals.addSample(pending, 0);
    expect(signals.take(0).overflowCount).toBe(3);
  });

  it("goes on when an Envoy's clock was set back", () => {
    const signals = new ClusterSignals();
    signals.addSample(count("completed", 1, 10 * clockStepMs), 0);
    expect(signals.addSample(count("completed", 1, 9 * clockStepMs + 1), 0)).toBe(false);
    expect(signals.addSample(count("completed", 1, 9 * clockStepMs), 0)).toBe(true);
    expect(signals.addSample(count("completed", 1, 9 * clockStepMs + 1_000), 0)).toBe(true);
  });

  it("keeps the count of full breakers of connections apart", () => {
    const signals = new ClusterSignals();
    signals.addSample(count("connectionsOverflowed", 4), 0);
    expect(signals.take(0)).toMatchObject({ overflowCount: 0, dropCount: 0 });
    expect(signals.connectionOverflowCount).toBe(4);
  });
});
