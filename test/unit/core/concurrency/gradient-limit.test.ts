import { describe, expect, it } from "vitest";
import {
  GradientLimit,
  type GradientSettings,
} from "../../../../src/core/concurrency/gradient-limit.js";
import { WindowRow } from "../../../support/concurrency-samples.js";

const settings: GradientSettings = {
  law: "gradient",
  rttTolerance: 1.5,
  smoothingRatio: 0.2,
  baseline: "minRtt",
  statistic: { kind: "mean" },
};

/**
 * A law at 18.2 whose baseline is 50 ms, and the windows that go on. It probed from 20 permits at
 * 100 ms to 8 at 50 ms: 0.2 requests a ms are 10 servers, which bear 1.5 x 10 + the root of 10.
 */
function learned(): { readonly law: GradientLimit; readonly row: WindowRow } {
  const law = new GradientLimit(settings, { initial: 20, min: 1, max: 40 });
  const row = new WindowRow();
  law.update(row.next({ rttMs: 100, inFlightMax: 20 }));
  expect(law.limit).toBe(8);
  while (law.limit === 8) law.update(row.next({ rttMs: 50, inFlightMax: 8 }));
  expect([law.limit, law.facts()["minRttMs"]]).toEqual([18, 50]);
  return { law, row };
}

describe("GradientLimit", () => {
  it.each([
    { rttMs: 60, gradient: 1.25, limit: 26, why: "whole steps up" },
    { rttMs: 75, gradient: 1, limit: 19, why: "the queue's root, smoothed" },
    { rttMs: 100, gradient: 0.75, limit: 18, why: "about still" },
    { rttMs: 150, gradient: 0.5, limit: 17, why: "down, smoothed" },
    { rttMs: 400, gradient: 0.5, limit: 17, why: "down by half at most" },
  ])("goes from 18 to $limit at $rttMs ms: $why", ({ rttMs, gradient, limit }) => {
    const { law, row } = learned();
    law.update(row.next({ rttMs, inFlightMax: 18 }));
    expect(law.facts()["gradientRatio"]).toBeCloseTo(gradient, 10);
    expect(law.limit).toBe(limit);
  });

  it.each([
    { initial: 25, limit: 18 },
    { initial: 24, limit: 24 },
    { initial: 20, limit: 20 },
  ])("goes from $initial to $limit after a probe that confirmed what bears 18", (row) => {
    const limits = { initial: row.initial, min: 1, max: 40 };
    const law = new GradientLimit(settings, limits).begin({ minRttMs: 50, nowMs: -40_000 });
    const windows = new WindowRow();
    law.update(windows.next({ rttMs: 100, inFlightMax: 20 }));
    expect(law.limit).toBe(8);
    while (law.limit === 8) law.update(windows.next({ rttMs: 50, inFlightMax: 8 }));
    expect(law.limit).toBe(row.limit);
  });

  it("doubles at most, whatever the latency was before", () => {
    const { law, row } = learned();
    law.update(row.next({ rttMs: 10, inFlightMax: 18 }));
    expect([law.facts()["gradientRatio"], law.limit]).toEqual([2, 40]);
  });

  it("goes down when more than a tenth is dropped, however quick the others are", () => {
    const { law, row } = learned();
    law.update(row.next({ rttMs: 50, droppedCount: 12, inFlightMax: 18 }));
    expect([law.facts()["gradientRatio"], law.limit]).toEqual([0.5, 17]);
  });

  it("does not grow while less than half of it is in use, nor fall below twice of that", () => {
    const { law, row } = learned();
    for (let i = 0; i < 5; i += 1) law.update(row.next({ rttMs: 50, inFlightMax: 9 }));
    expect(law.limit).toBe(18);
    law.update(row.next({ rttMs: 150, inFlightMax: 9 }));
    expect(law.limit).toBe(18);
    // Another one, since two in a row that look like queueing would be looked into.
    const other = learned();
    for (let i = 0; i < 5; i += 1) other.law.update(other.row.next({ rttMs: 50, inFlightMax: 9 }));
    other.law.update(other.row.next({ rttMs: 150, inFlightMax: 8 }));
    expect(other.law.limit).toBe(17);
  });

  it("stays within its bounds", () => {
    const { law, row } = learned();
    for (let i = 0; i < 9; i += 1) law.update(row.next({ rttMs: 50, inFlightMax: 40 }));
    expect(law.limit).toBe(40);
    const low = new GradientLimit(settings, { initial: 1, min: 7, max: 40 });
    expect(low.limit).toBe(7);
  });

  it("says its gradient beside the baseline", () => {
    const { law } = learned();
    expect(Object.keys(law.facts()).toSorted()).toEqual([
      "gradientRatio",
      "minRttMs",
      "probeCount",
    ]);
  });
});
