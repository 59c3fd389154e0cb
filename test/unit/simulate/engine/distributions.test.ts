import { describe, expect, it } from "vitest";
import type { TimeDistribution } from "../../../../src/policy/scenario/scenario-times.js";
import { createDraw, meanOf } from "../../../../src/simulate/engine/distributions.js";
import { SeededRandom } from "../../../../src/simulate/engine/seeded-random.js";

const traces = new Map([["times", [1, 2, 6]]]);

const cases: readonly TimeDistribution[] = [
  { kind: "exponential", meanMs: 20 },
  { kind: "fixed", ms: 20 },
  { kind: "lognormal", medianMs: 20, p99Ms: 90 },
  { kind: "bimodal", fastMs: 5, slowMs: 100, slowRatio: 0.1 },
  { kind: "pareto", minMs: 5, maxMs: 500, shape: 1.5 },
  { kind: "pareto", minMs: 5, maxMs: 500, shape: 1 },
  { kind: "trace", file: "times" },
];

describe("createDraw()", () => {
  it.each(cases)("draws $kind with the mean that meanOf() says", (distribution) => {
    const draw = createDraw(distribution, { random: new SeededRandom(7), traces });
    let sum = 0;
    for (let i = 0; i < 50_000; i += 1) sum += draw();
    const mean = meanOf(distribution, traces);
    expect(Math.abs(sum / 50_000 / mean - 1)).toBeLessThan(0.03);
  });
});
