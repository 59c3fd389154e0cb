import { describe, expect, it } from "vitest";
import type { BaselineLimit } from "../../../../src/core/concurrency/baseline-limit.js";
import { GradientLimit } from "../../../../src/core/concurrency/gradient-limit.js";
import { VegasLimit } from "../../../../src/core/concurrency/vegas-limit.js";
import { sampleOf, windowOf } from "../../../support/concurrency-samples.js";

const limits = { initial: 10, min: 1, max: 40 };
const statistic = { kind: "mean" } as const;
const gradient = { rttTolerance: 1.5, smoothingRatio: 0.2, baseline: "minRtt", statistic } as const;
const vegas = { smoothingRatio: 1, statistic };

interface Row {
  readonly name: string;
  readonly create: () => BaselineLimit;
}

const rows: readonly Row[] = [
  {
    name: "GradientLimit",
    create: () => new GradientLimit({ law: "gradient", ...gradient }, limits),
  },
  { name: "VegasLimit", create: () => new VegasLimit({ law: "vegas", ...vegas }, limits) },
];

/** A request each 10 ms. */
function servedBy(law: BaselineLimit): (rttMs: number, inFlight: number) => void {
  let nowMs = 0;
  return (rttMs, inFlight) => {
    nowMs += 10;
    law.record(sampleOf({ startMs: nowMs - rttMs, endMs: nowMs, inFlight }));
  };
}

describe.each(rows)("BaselineLimit, as $name", ({ create }) => {
  it("leaves aside what ends first in a probe, and what was let in before it", () => {
    const law = create();
    const serve = servedBy(law);
    while (law.limit === 10) serve(50, 10);
    // Three round trips of 50 ms.
    for (let i = 0; i < 14; i += 1) serve(1, 4);
    serve(50, 5);
    let servedCount = 0;
    while (law.limit === 4) {
      serve(50, 4);
      servedCount += 1;
    }
    expect(law.facts()["minRttMs"]).toBe(50);
    expect(servedCount).toBe(101);
  });

  it("learns from samples as from windows, in a probe only from those let in during it", () => {
    const law = create();
    const serve = servedBy(law);
    while (law.limit === 10) serve(50, 10);
    expect(law.limit).toBe(4);
    for (let i = 0; i < 50; i += 1) serve(5_000, 5);
    while (law.limit === 4) serve(50, 4);
    expect(law.facts()["minRttMs"]).toBe(50);
  });

  it.each([
    { sampleCount: 49, droppedCount: 51, isHalved: true },
    { sampleCount: 50, droppedCount: 50, isHalved: false },
  ])("is halved: $isHalved, where $droppedCount of a hundred are dropped", (row) => {
    const law = create().begin({ minRttMs: 50, nowMs: 0 });
    law.update(windowOf({ ...row, endMs: 1_000 }));
    expect(law.limit <= 5).toBe(row.isHalved);
  });
});
