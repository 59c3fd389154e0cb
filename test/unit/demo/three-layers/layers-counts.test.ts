import { describe, expect, it } from "vitest";
import { createStyle } from "../../../../src/app/base/style.js";
import {
  figuresOf,
  type LayersCounts,
  noCallerCounts,
  renderFigures,
} from "../../../../src/demo/three-layers/layers-counts.js";
import { drawClass } from "../../../../src/demo/three-layers/layers-settings.js";

const nothing: LayersCounts = {
  caller: noCallerCounts,
  service: { arrived: 0, busyMs: 0, wastedMs: 0, capacityMs: 0 },
};

const some: LayersCounts = {
  caller: {
    requests: 100,
    critical: 20,
    attempts: 150,
    served: 60,
    servedCritical: 19,
    servedWorkMs: 12_000,
    workMs: 20_000,
    refusedHere: 10,
    refused: 25,
    late: 5,
  },
  service: { arrived: 90, busyMs: 15_000, wastedMs: 3_000, capacityMs: 16_000 },
};

describe("figuresOf()", () => {
  it("compares what was served with what was possible and asked for", () => {
    expect(figuresOf(nothing, some)).toEqual({
      goodputRatio: 12_000 / 16_000,
      criticalRatio: 0.95,
      attemptsPerRequest: 1.5,
      wastedRatio: 0.2,
      requests: 100,
      served: 60,
      refused: 35,
      late: 5,
    });
    const idle = { ...some, service: { ...some.service, capacityMs: 50_000 } };
    expect(figuresOf(nothing, idle).goodputRatio).toBe(12_000 / 20_000);
  });

  it("is 0 where nothing has happened", () => {
    const figures = figuresOf(some, some);
    expect(new Set(Object.values(figures))).toEqual(new Set([0]));
  });
});

describe("renderFigures()", () => {
  it("shows no more than all", () => {
    const figures = { ...figuresOf(nothing, some), goodputRatio: 1.02 };
    expect(renderFigures(12, figures, createStyle(false))).toBe(
      "   12 s   goodput 100.0 %   critical 95.0 %   1.50 attempts a request   wasted 20.0 %",
    );
  });
});

describe("drawClass()", () => {
  it.each([
    { loadRatio: 1, draw: 0.19, priority: "critical" },
    { loadRatio: 1, draw: 0.21, priority: "high" },
    { loadRatio: 10, draw: 0.019, priority: "critical" },
    { loadRatio: 10, draw: 0.03, priority: "high" },
    { loadRatio: 10, draw: 0.5, priority: "normal" },
    { loadRatio: 10, draw: 0.99, priority: "low" },
    { loadRatio: 0.1, draw: 0.99, priority: "critical" },
  ])("is $priority at a load of $loadRatio and a draw of $draw", ({ loadRatio, draw, ...one }) => {
    expect(drawClass(loadRatio, draw)).toBe(one.priority);
  });
});
