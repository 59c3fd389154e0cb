import { describe, expect, it } from "vitest";
import { AimdLimit, type AimdSettings } from "../../../../src/core/concurrency/aimd-limit.js";
import type { SampleOutcome } from "../../../../src/core/concurrency/concurrency-limit.js";
import { sampleOf, windowOf } from "../../../support/concurrency-samples.js";

const usual: AimdSettings = { law: "aimd", increase: 1, decreaseRatio: 0.5 };

function lawAt(initial: number, settings: AimdSettings = usual): AimdLimit {
  return new AimdLimit(settings, { initial, min: 2, max: 100 });
}

interface Case {
  readonly from: number;
  readonly inFlight: number;
  readonly outcome: SampleOutcome;
  readonly to: number;
}

const cases: readonly Case[] = [
  { from: 20, inFlight: 20, outcome: "success", to: 21 },
  { from: 20, inFlight: 10, outcome: "success", to: 21 },
  { from: 20, inFlight: 9, outcome: "success", to: 20 },
  { from: 100, inFlight: 100, outcome: "success", to: 100 },
  { from: 20, inFlight: 20, outcome: "dropped", to: 10 },
  { from: 20, inFlight: 1, outcome: "dropped", to: 10 },
  { from: 3, inFlight: 3, outcome: "dropped", to: 2 },
  { from: 2, inFlight: 2, outcome: "dropped", to: 2 },
  { from: 20, inFlight: 20, outcome: "ignore", to: 20 },
];

describe("AimdLimit", () => {
  it.each(cases)("goes from $from to $to at a $outcome with $inFlight in use", (row) => {
    const law = lawAt(row.from);
    law.record(sampleOf({ inFlight: row.inFlight, outcome: row.outcome }));
    expect(law.limit).toBe(row.to);
  });

  it("steps and cuts as its settings say, by one at least", () => {
    const law = lawAt(20, { law: "aimd", increase: 0.5, decreaseRatio: 0.99 });
    law.record(sampleOf({ inFlight: 20 }));
    expect(law.limit).toBe(20);
    law.record(sampleOf({ inFlight: 20 }));
    expect(law.limit).toBe(21);
    law.record(sampleOf({ outcome: "dropped" }));
    expect(law.limit).toBe(20);
  });

  it("cuts once for all who were let in before the cut", () => {
    const law = lawAt(80);
    law.record(sampleOf({ startMs: 0, endMs: 100, outcome: "dropped" }));
    expect(law.limit).toBe(40);
    law.record(sampleOf({ startMs: 99, endMs: 150, outcome: "dropped" }));
    expect(law.limit).toBe(40);
    law.record(sampleOf({ startMs: 100, endMs: 200, outcome: "dropped" }));
    expect(law.limit).toBe(20);
  });

  it("moves once a window where it is taught by windows", () => {
    const law = lawAt(20);
    law.update(windowOf({ inFlightMax: 20 }));
    expect(law.limit).toBe(21);
    law.update(windowOf({ inFlightMax: 10 }));
    expect(law.limit).toBe(21);
    law.update(windowOf({ inFlightMax: 20, droppedCount: 1 }));
    expect(law.limit).toBe(10);
    law.update(windowOf({ rttMs: undefined, sampleCount: 0, inFlightMax: 0 }));
    expect(law.limit).toBe(10);
  });

  it("begins within its bounds", () => {
    expect(lawAt(1).limit).toBe(2);
    expect(lawAt(1_000).limit).toBe(100);
    const law = lawAt(20);
    expect(law.limit).toBe(20);
    expect(law.facts()).toEqual({});
  });
});
