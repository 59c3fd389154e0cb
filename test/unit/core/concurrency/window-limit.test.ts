import { describe, expect, it } from "vitest";
import { WindowLimit, windowGrowthCount } from "../../../../src/core/concurrency/window-limit.js";
import { sampleOf, windowOf } from "../../../support/concurrency-samples.js";

function lawAt(initial: number): WindowLimit {
  return new WindowLimit({ initial, min: 20, max: 300 });
}

function succeed(law: WindowLimit, count: number): void {
  for (let done = 0; done < count; done += 1) law.record(sampleOf());
}

describe("WindowLimit", () => {
  it("grows by one after ten successes in a row", () => {
    const law = lawAt(200);
    succeed(law, windowGrowthCount - 1);
    expect(law.limit).toBe(200);
    succeed(law, 1);
    expect(law.limit).toBe(201);
    succeed(law, 2 * windowGrowthCount);
    expect(law.limit).toBe(203);
  });

  it("counts successes anew after a late one, whether that shrank it or not", () => {
    const law = lawAt(200);
    succeed(law, 9);
    law.record(sampleOf({ position: 280, outcome: "dropped" }));
    succeed(law, 9);
    expect(law.limit).toBe(200);
    succeed(law, 1);
    expect(law.limit).toBe(201);
  });

  it.each([
    { from: 200, position: 201, to: 191 },
    { from: 200, position: 209, to: 199 },
    { from: 200, position: 210, to: 200 },
    { from: 200, position: 250, to: 200 },
    { from: 200, position: 100, to: 90 },
    { from: 200, position: 30, to: 20 },
    { from: 200, position: 1, to: 20 },
  ])("goes from $from to $to when place $position is late", ({ from, position, to }) => {
    const law = lawAt(from);
    law.record(sampleOf({ position, outcome: "dropped" }));
    expect(law.limit).toBe(to);
  });

  it("stays within its bounds, and learns nothing from what says nothing", () => {
    const law = lawAt(300);
    succeed(law, 50);
    law.record(sampleOf({ position: 1, outcome: "ignore" }));
    expect(law.limit).toBe(300);
    expect(lawAt(5).limit).toBe(20);
  });

  it("takes a window with drops for one late request at its most permits", () => {
    const law = lawAt(200);
    law.update(windowOf({ sampleCount: 25 }));
    expect(law.limit).toBe(202);
    law.update(windowOf({ sampleCount: 5 }));
    expect(law.limit).toBe(203);
    law.update(windowOf({ sampleCount: 500, droppedCount: 1, inFlightMax: 190 }));
    expect(law.limit).toBe(180);
    expect(law.facts()).toEqual({ successCount: 0, shrinkCount: 1 });
  });
});
