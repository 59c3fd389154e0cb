import { describe, expect, it } from "vitest";
import type { LimitBounds } from "../../../../src/core/concurrency/limit-bounds.js";
import { VegasLimit, type VegasSettings } from "../../../../src/core/concurrency/vegas-limit.js";
import { WindowRow } from "../../../support/concurrency-samples.js";

const settings: VegasSettings = {
  law: "vegas",
  smoothingRatio: 1,
  statistic: { kind: "mean" },
};

/** A law at its first limit whose baseline of 50 ms a probe measured, and windows that go on. */
function learned(given: Partial<LimitBounds> = {}, more: Partial<VegasSettings> = {}) {
  const limits = { initial: 14, min: 1, max: 1_000, ...given };
  const law = new VegasLimit({ ...settings, ...more }, limits);
  const row = new WindowRow();
  const inFlightMax = limits.initial;
  law.update(row.next({ rttMs: 50, inFlightMax }));
  const probeLimit = law.limit;
  expect(probeLimit).toBeLessThan(limits.initial);
  while (law.limit === probeLimit) law.update(row.next({ rttMs: 50, inFlightMax: probeLimit }));
  expect([law.limit, law.facts()["minRttMs"]]).toEqual([limits.initial, 50]);
  return { law, row };
}

describe("VegasLimit", () => {
  it.each([
    { rttMs: 50, queue: 0, limit: 20 },
    { rttMs: 53, queue: 1, limit: 20 },
    { rttMs: 55, queue: 2, limit: 15 },
    { rttMs: 60, queue: 3, limit: 14 },
    { rttMs: 70, queue: 4, limit: 14 },
    { rttMs: 87, queue: 6, limit: 14 },
    { rttMs: 100, queue: 7, limit: 13 },
  ])("goes from 14 to $limit at $rttMs ms, a queue of $queue", ({ rttMs, queue, limit }) => {
    const { law, row } = learned();
    law.update(row.next({ rttMs, inFlightMax: 14 }));
    expect([law.facts()["queueCount"], law.limit]).toEqual([queue, limit]);
  });

  it.each([
    { rttMs: 50, limit: 360 },
    { rttMs: 55, limit: 310 },
    { rttMs: 59, limit: 300 },
    { rttMs: 65, limit: 290 },
  ])("goes from 300 to $limit at $rttMs ms, by shares of it", ({ rttMs, limit }) => {
    const { law, row } = learned({ initial: 300 });
    law.update(row.next({ rttMs, inFlightMax: 300 }));
    expect(law.limit).toBe(limit);
  });

  it("goes down when more than a tenth is dropped, and only then", () => {
    const { law, row } = learned();
    law.update(row.next({ rttMs: 70, droppedCount: 11, inFlightMax: 14 }));
    expect(law.limit).toBe(14);
    law.update(row.next({ rttMs: 50, droppedCount: 12, inFlightMax: 14 }));
    expect(law.limit).toBe(13);
  });

  it("does not grow while less than half of it is in use", () => {
    const { law, row } = learned();
    law.update(row.next({ rttMs: 50, inFlightMax: 6 }));
    expect(law.limit).toBe(14);
    law.update(row.next({ rttMs: 50, inFlightMax: 7 }));
    expect(law.limit).toBe(20);
  });

  it("goes part of the way with smoothing, and stays within its bounds", () => {
    const { law, row } = learned({ max: 18 }, { smoothingRatio: 0.5 });
    law.update(row.next({ rttMs: 50, inFlightMax: 14 }));
    expect(law.limit).toBe(16);
    for (let i = 0; i < 9; i += 1) law.update(row.next({ rttMs: 50, inFlightMax: 14 }));
    expect(law.limit).toBe(17);
  });

  it.each([
    { rttMs: 70, probeCount: 1 },
    { rttMs: 72, probeCount: 2 },
  ])("has probed $probeCount times after two windows at $rttMs ms and a limit of 60", (row) => {
    const { law, row: windows } = learned({ initial: 60 });
    for (let i = 0; i < 9; i += 1) law.update(windows.next({ rttMs: 59, inFlightMax: 60 }));
    expect(law.limit).toBe(60);
    for (let i = 0; i < 2; i += 1) law.update(windows.next({ rttMs: row.rttMs, inFlightMax: 60 }));
    expect(law.facts()["probeCount"]).toBe(row.probeCount);
  });

  it("probes when the queue is half as long again as it may be, and jumps to what there is", () => {
    const { law, row } = learned({ initial: 60 });
    for (let i = 0; i < 9; i += 1) law.update(row.next({ rttMs: 57, inFlightMax: 60 }));
    // Ten servers are left: what is in use above that waits.
    const see = (): void => {
      const inFlightMax = law.limit;
      const rttMs = Math.max(50, 5 * inFlightMax);
      law.update(row.next({ rttMs, inFlightMax, sampleCount: 500 }));
    };
    see();
    expect(law.limit).toBeGreaterThan(50);
    see();
    expect(law.facts()["probeCount"]).toBe(2);
    for (let i = 0; i < 5; i += 1) see();
    expect(law.limit).toBe(16);
  });
});
