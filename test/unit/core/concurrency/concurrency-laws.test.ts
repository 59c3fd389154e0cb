import { describe, expect, it } from "vitest";
import {
  concurrencyDefaults,
  createConcurrencyLimit,
} from "../../../../src/core/concurrency/concurrency-laws.js";
import type { ConcurrencySettings } from "../../../../src/core/settings/admission-settings.js";

const { limits, aimd, vegas, gradient, latencyShed, signal } = concurrencyDefaults;

const cases: readonly { settings: ConcurrencySettings; name: string; limit: number }[] = [
  { settings: { limits, law: "fixed" }, name: "FixedLimit", limit: 1_000 },
  { settings: { limits, law: "aimd", ...aimd }, name: "AimdLimit", limit: 50 },
  { settings: { limits, law: "vegas", ...vegas }, name: "VegasLimit", limit: 50 },
  { settings: { limits, law: "gradient", ...gradient }, name: "GradientLimit", limit: 50 },
  {
    settings: { limits, law: "gradient", ...gradient, baseline: "drifting" },
    name: "DriftingGradientLimit",
    limit: 50,
  },
  { settings: { limits, law: "knee" }, name: "KneeLimit", limit: 50 },
  {
    settings: { limits, law: "latencyShed", ...latencyShed, thresholdMs: 200 },
    name: "LatencyShed",
    limit: 1_000,
  },
  {
    settings: { limits, law: "signal", ...signal, target: 10, critical: 20 },
    name: "SignalLimit",
    limit: 50,
  },
  { settings: { limits, law: "window" }, name: "WindowLimit", limit: 50 },
];

describe("createConcurrencyLimit()", () => {
  it.each(cases)("makes a $name, which allows $limit at first", ({ settings, name, limit }) => {
    const law = createConcurrencyLimit(settings);
    expect(law.constructor.name).toBe(name);
    expect(law.limit).toBe(limit);
    expect(law.shedRatio(0)).toBe(0);
  });

  it.each(cases)("begins a $name with a baseline that somebody else has measured", (row) => {
    const law = createConcurrencyLimit(row.settings, { minRttMs: 40, nowMs: 0 });
    const isBaselined = ["GradientLimit", "VegasLimit"].includes(row.name);
    expect(law.facts()["minRttMs"]).toBe(isBaselined ? 40 : undefined);
  });

  it("gives drift no place by default", () => {
    expect(gradient.baseline).toBe("minRtt");
  });
});
