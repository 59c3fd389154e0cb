import { describe, expect, it } from "vitest";
import { createConcurrencyLimit } from "../../../../src/core/concurrency/concurrency-laws.js";
import { concurrencyOf } from "../../../simulation/law-scenarios.js";

const cases = [
  { text: "law: fixed", name: "FixedLimit", limit: 1_000 },
  { text: "law: aimd", name: "AimdLimit", limit: 50 },
  { text: "law: vegas", name: "VegasLimit", limit: 50 },
  { text: "law: gradient", name: "GradientLimit", limit: 50 },
  { text: "gradient: {baseline: drifting}", name: "DriftingGradientLimit", limit: 50 },
  { text: "law: knee", name: "KneeLimit", limit: 50 },
  { text: "law: latencyShed, latencyShed: {threshold: 200ms}", name: "LatencyShed", limit: 1_000 },
  {
    text: "law: signal, limits: {initial: 50}, signal: {fixed: 10}",
    name: "SignalLimit",
    limit: 50,
  },
  { text: "law: window", name: "WindowLimit", limit: 50 },
].map((row) => ({ ...row, settings: concurrencyOf(`{${row.text}}`) }));

describe("createConcurrencyLimit()", () => {
  it.each(cases)("makes a $name, which allows $limit at first", ({ settings, name, limit }) => {
    const law = createConcurrencyLimit(settings);
    expect(law.constructor.name).toBe(name);
    expect(law.limit).toBe(limit);
    expect(law.shedRatio?.(0) ?? 0).toBe(0);
  });

  it.each(cases)("begins a $name with a baseline that somebody else has measured", (row) => {
    const law = createConcurrencyLimit(row.settings, { minRttMs: 40, nowMs: 0 });
    const isBaselined = ["GradientLimit", "VegasLimit"].includes(row.name);
    expect(law.facts()["minRttMs"]).toBe(isBaselined ? 40 : undefined);
  });

  it("gives drift no place by default", () => {
    expect(concurrencyOf("{law: gradient}")).toMatchObject({ baseline: "minRtt" });
  });
});
