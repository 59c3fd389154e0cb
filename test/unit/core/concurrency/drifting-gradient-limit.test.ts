import { describe, expect, it } from "vitest";
import { DriftingGradientLimit } from "../../../../src/core/concurrency/drifting-gradient-limit.js";
import type { GradientSettings } from "../../../../src/core/concurrency/gradient-limit.js";
import { sampleOf, WindowRow } from "../../../support/concurrency-samples.js";

const settings: GradientSettings = {
  law: "gradient",
  rttTolerance: 1.5,
  smoothingRatio: 0.2,
  baseline: "drifting",
  statistic: { kind: "mean" },
};

/** A law at 16 whose long mean is that of ten windows of 50 ms with little in use. */
function warm(): { readonly law: DriftingGradientLimit; readonly row: WindowRow } {
  const law = new DriftingGradientLimit(settings, { initial: 16, min: 4, max: 20 });
  const row = new WindowRow();
  for (let i = 0; i < 10; i += 1) law.update(row.next({ rttMs: 50, inFlightMax: 7 }));
  expect([law.limit, law.facts()["longRttMs"]]).toEqual([16, 50]);
  return { law, row };
}

describe("DriftingGradientLimit", () => {
  it.each([
    { rttMs: 50, gradient: 1, limit: 16 },
    { rttMs: 100, gradient: 0.7525, limit: 16 },
    { rttMs: 150, gradient: 0.5033, limit: 15 },
    { rttMs: 1_000, gradient: 0.5, limit: 15 },
  ])("goes from 16 to $limit at $rttMs ms", ({ rttMs, gradient, limit }) => {
    const { law, row } = warm();
    law.update(row.next({ rttMs, inFlightMax: 16 }));
    expect(law.facts()["gradientRatio"]).toBeCloseTo(gradient, 3);
    expect(law.limit).toBe(limit);
  });

  it("takes a plain mean of ten windows, and then weighs a new one with 2 / 601", () => {
    const { law, row } = warm();
    law.update(row.next({ rttMs: 651, inFlightMax: 1 }));
    expect(law.facts()["longRttMs"]).toBeCloseTo(52, 10);
  });

  it("cuts a long mean above twice the latency by a twentieth a window", () => {
    const { law, row } = warm();
    law.update(row.next({ rttMs: 20, inFlightMax: 1 }));
    expect(law.facts()["longRttMs"]).toBeCloseTo((50 - (30 * 2) / 601) * 0.95, 10);
  });

  it("learns nothing from windows with less than half of it in use, or of nobody", () => {
    const { law, row } = warm();
    law.update(row.next({ rttMs: 500, inFlightMax: 7 }));
    law.update(row.next({ rttMs: undefined, sampleCount: 0, droppedCount: 50, inFlightMax: 16 }));
    expect(law.limit).toBe(16);
  });

  it("stays within its bounds", () => {
    const { law, row } = warm();
    for (let i = 0; i < 20; i += 1) law.update(row.next({ rttMs: 50, inFlightMax: 20 }));
    expect(law.limit).toBe(20);
    for (let i = 0; i < 60; i += 1) law.update(row.next({ rttMs: 50_000, inFlightMax: 20 }));
    expect(law.limit).toBe(4);
  });

  it("learns from samples as from their windows", () => {
    const law = new DriftingGradientLimit(settings, { initial: 16, min: 4, max: 40 });
    for (let endMs = 50; endMs <= 1_050; endMs += 10) {
      law.record(sampleOf({ startMs: endMs - 50, endMs, inFlight: 16 }));
    }
    expect(law.facts()).toEqual({ gradientRatio: 1, longRttMs: 50 });
    expect(law.limit).toBe(16);
  });
});
