import { describe, expect, it } from "vitest";
import type { ConcurrencySettings } from "../../../../src/core/concurrency/concurrency-laws.js";
import { FleetWindow } from "../../../../src/core/feedback/feedback-window.js";
import { lawOf } from "../../../simulation/law-scenarios.js";
import { nodeReportOf } from "../../../support/node-reports.js";

const gradient = lawOf("gradient");

describe("FleetWindow", () => {
  it("adds up what Envoys report, with the most that was in work", () => {
    const window = new FleetWindow(gradient);
    window.add(nodeReportOf(), 0);
    window.add(nodeReportOf({ latency: { count: 300, sumMs: 33_000 } }), 100);
    window.look({ inFlight: 20, rps: 380 });
    window.look({ inFlight: 12, rps: 420 });
    expect(window.end(1_000)).toEqual({
      rttMs: 95,
      sampleCount: 400,
      droppedCount: 0,
      inFlightMax: 20,
      servedPerMs: 0.4,
      endMs: 1_000,
    });
    expect(window.end(2_000)).toBeUndefined();
  });

  it.each([
    { title: "less than a second", count: 100, sumMs: 5_000, shortMs: 999 },
    { title: "less than two round trips", count: 100, sumMs: 200_000, shortMs: 3_999 },
    { title: "even of long ones no more than ten seconds", count: 10, sumMs: 6e5, shortMs: 9_999 },
  ])("goes on for $title", ({ count, sumMs, shortMs }) => {
    const window = new FleetWindow(gradient);
    window.add(nodeReportOf({ latency: { count, sumMs } }), 0);
    expect(window.end(shortMs)).toBeUndefined();
    expect(window.end(shortMs + 1)?.sampleCount).toBe(count);
  });

  it("learns nothing from idle time, and waits for ten", () => {
    const window = new FleetWindow(gradient);
    const idle = nodeReportOf({ latency: { count: 0, sumMs: 0 } });
    window.add(idle, 0);
    expect(window.end(60_000)).toBeUndefined();
    window.add(nodeReportOf({ latency: { count: 9, sumMs: 450 } }), 60_000);
    expect(window.end(62_000)).toBeUndefined();
    window.add(nodeReportOf({ latency: { count: 1, sumMs: 50 } }), 61_000);
    expect(window.end(62_000)?.sampleCount).toBe(10);
  });

  it("counts what is in flight as dropped where nothing ends for long", () => {
    const window = new FleetWindow(gradient);
    const idle = nodeReportOf({ latency: { count: 0, sumMs: 0 } });
    const look = (inFlight: number): void => window.look({ inFlight, rps: 0 });
    window.add(nodeReportOf({ latency: { count: 5, sumMs: 4_500 } }), 0);
    look(200);
    expect(window.end(1_000)).toBeUndefined();
    window.add(idle, 1_000);
    look(210);
    expect(window.end(2_000)).toBeUndefined();
    look(220);
    expect(window.end(3_999)).toBeUndefined();
    look(190);
    expect(window.end(4_000)).toEqual({
      rttMs: 900,
      sampleCount: 5,
      droppedCount: 190,
      inFlightMax: 220,
      servedPerMs: 0,
      endMs: 4_000,
    });
    // Requests took 900 ms when they last ended: four times that must pass now.
    for (const nowMs of [5_000, 8_599]) {
      look(190);
      expect(window.end(nowMs)).toBeUndefined();
    }
    look(190);
    expect(window.end(8_600)?.droppedCount).toBe(190);
  });

  it("does not take few requests, or some that end, for that", () => {
    const window = new FleetWindow(gradient);
    for (let nowMs = 0; nowMs <= 60_000; nowMs += 1_000) {
      window.look({ inFlight: 9, rps: 0 });
      expect(window.end(nowMs)).toBeUndefined();
    }
    for (let nowMs = 61_000; nowMs <= 69_000; nowMs += 1_000) {
      window.look({ inFlight: 90, rps: 1 });
      window.add(nodeReportOf({ latency: { count: 1, sumMs: 9_000 } }), nowMs - 1_000);
      expect(window.end(nowMs)).toBeUndefined();
    }
  });

  it("forgets what it has", () => {
    const window = new FleetWindow(gradient);
    window.add(nodeReportOf(), 0);
    window.look({ inFlight: 99, rps: 100 });
    window.restart();
    expect(window.end(5_000)).toBeUndefined();
    window.add(nodeReportOf(), 5_000);
    expect(window.end(6_000)?.inFlightMax).toBe(0);
  });

  it.each<{ law: ConcurrencySettings; p50: number | undefined; rttMs: number }>([
    { law: gradient, p50: 40, rttMs: 50 },
    { law: byPercentile(50), p50: 40, rttMs: 40 },
    { law: byPercentile(50), p50: undefined, rttMs: 50 },
    { law: byPercentile(90), p50: 40, rttMs: 50 },
  ])("takes $rttMs ms where the median is $p50", ({ law, p50, rttMs }) => {
    const window = new FleetWindow(law);
    const latency = { count: 100, sumMs: 5_000, ...(p50 === undefined ? {} : { p50 }) };
    window.add(nodeReportOf({ latency }), 0);
    expect(window.end(1_000)?.rttMs).toBe(rttMs);
  });

  it.each([
    { law: lawOf("gradient"), served: 100, failed: 20, samples: 100, drops: 0 },
    { law: lawOf("gradient"), served: 10, failed: 90, samples: 10, drops: 80 },
    { law: lawOf("aimd"), served: 100, failed: 20, samples: 80, drops: 20 },
    { law: lawOf("window"), served: 0, failed: 20, samples: 0, drops: 20 },
  ])("tells $law.law of $failed failures with $served answers as $drops drops", (row) => {
    const window = new FleetWindow(row.law);
    const latency = { count: row.served, sumMs: row.served * 50 };
    window.add(nodeReportOf({ latency, errorCount: row.failed }), 0);
    const { sampleCount, droppedCount } = window.end(1_000) ?? {};
    expect([sampleCount, droppedCount]).toEqual([row.samples, row.drops]);
  });
});

function byPercentile(percentile: number): ConcurrencySettings {
  const { limits } = gradient;
  return { law: "vegas", limits, smoothingRatio: 1, statistic: { kind: "percentile", percentile } };
}
