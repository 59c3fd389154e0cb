import { describe, expect, it } from "vitest";
import { SignalLimit } from "../../../src/core/signal-limit.js";

const limits = { initial: 50, min: 10, max: 1_000 };

function lagLaw(smoothingRatio = 1): SignalLimit {
  return new SignalLimit(
    { law: "signal", target: 10_000, critical: 100_000, smoothingRatio },
    limits,
  );
}

describe("SignalLimit", () => {
  it.each([
    { lag: -5, limit: 1_000 },
    { lag: 0, limit: 1_000 },
    { lag: 10_000, limit: 1_000 },
    { lag: 10_001, limit: 1_000 },
    { lag: 10_091, limit: 999 },
    { lag: 32_500, limit: 753 },
    { lag: 55_000, limit: 505 },
    { lag: 99_999, limit: 10 },
    { lag: 100_000, limit: 10 },
    { lag: 5_000_000, limit: 10 },
  ])("gives $limit permits at a lag of $lag", ({ lag, limit }) => {
    const law = lagLaw();
    law.read(lag);
    expect(law.limit).toBe(limit);
  });

  it("begins with its initial limit, and forgets it at the first reading", () => {
    const law = lagLaw(0.1);
    expect([law.limit, law.facts()]).toEqual([50, {}]);
    law.read(55_000);
    expect([law.limit, law.facts()]).toEqual([505, { reading: 55_000 }]);
  });

  it("follows at once without smoothing, and by its part with it", () => {
    const atOnce = lagLaw();
    atOnce.read(10_000);
    atOnce.read(100_000);
    expect(atOnce.limit).toBe(10);
    const smooth = lagLaw(0.25);
    smooth.read(10_000);
    smooth.read(100_000);
    expect(smooth.facts()).toEqual({ reading: 32_500 });
    expect(smooth.limit).toBe(753);
  });

  it("leaves aside what is no number", () => {
    const law = lagLaw();
    law.read(55_000);
    law.read(Number.NaN);
    law.read(Number.POSITIVE_INFINITY);
    expect(law.limit).toBe(505);
  });

  it("learns nothing from requests", () => {
    const law = lagLaw();
    law.record();
    law.update();
    expect([law.limit, law.shedRatio(), law.dropsQueued()]).toEqual([50, 0, false]);
  });
});
