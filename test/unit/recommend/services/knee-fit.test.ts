import { describe, expect, test } from "vitest";
import { findKnee } from "../../../../src/recommend/services/knee-fit.js";
import { LatencyCurve } from "../../../../src/recommend/services/latency-curve.js";
import { fitNonNegative } from "../../../../src/recommend/services/least-squares.js";
import { staticLimit } from "../../../../src/recommend/services/static-limit.js";

/** A curve with the same latencies at each level, a tenth up and down. */
function curveOf(levels: readonly number[], latencyMs: (level: number) => number) {
  const curve = new LatencyCurve();
  for (const level of levels) {
    for (let i = 0; i < 40; i += 1) {
      curve.add({ level, latencyMs: latencyMs(level) * (i % 2 === 0 ? 0.9 : 1.1) });
    }
  }
  return curve.points();
}

function upTo(levelMax: number, from = 1): readonly number[] {
  return Array.from({ length: levelMax - from + 1 }, (_, i) => from + i);
}

describe("findKnee()", () => {
  test("finds the workers of a service in which requests wait beyond them", () => {
    const verdict = findKnee(curveOf(upTo(60), (level) => 50 * Math.max(1, level / 20)));
    expect(verdict).toMatchObject({ kind: "seen", fit: { model: "twoSegments" } });
    if (verdict.kind !== "seen") return;
    const { knee, kneeMin, kneeMax, perSecondMax, baseMs, residualRatio } = verdict.fit;
    expect(knee).toBeCloseTo(20, 0);
    expect(kneeMin).toBeLessThanOrEqual(knee);
    expect(kneeMax).toBeGreaterThanOrEqual(knee);
    expect(perSecondMax).toBeCloseTo(400, -1);
    expect(baseMs).toBeCloseTo(50, 0);
    expect(residualRatio).toBeLessThan(0.03);
  });

  test("finds the peak of a service whose throughput falls beyond it", () => {
    const [contention, crosstalk] = [0.02, 0.002];
    const latencyMs = (level: number) =>
      10 * (1 + contention * (level - 1) + crosstalk * level * (level - 1));
    const verdict = findKnee(curveOf(upTo(80), latencyMs));
    expect(verdict).toMatchObject({ kind: "seen", fit: { model: "usl" } });
    if (verdict.kind !== "seen") return;
    expect(verdict.fit.knee).toBeCloseTo(Math.sqrt((1 - contention) / crosstalk), 0);
  });

  test("takes one request for the knee where each further one only waits", () => {
    const verdict = findKnee(curveOf(upTo(30), (level) => 50 * level));
    expect(verdict).toMatchObject({ kind: "seen", fit: { knee: 1, kneeMin: 1 } });
  });

  test.each([
    {
      why: "few levels",
      curve: curveOf([1, 2, 3], () => 50),
      expected: { kind: "few", levelCount: 3 },
    },
    { why: "nothing at all", curve: [], expected: { kind: "few", levelCount: 0 } },
    { why: "a flat latency", curve: curveOf(upTo(20), () => 50), expected: { kind: "below" } },
    {
      why: "contention without an end",
      curve: curveOf(upTo(20), (level) => 50 + 5 * level),
      expected: { kind: "below" },
    },
    {
      why: "a knee that was hardly passed",
      curve: curveOf(upTo(22), (level) => 50 * Math.max(1, level / 20)),
      expected: { kind: "below" },
    },
    {
      why: "a service that was always full",
      curve: curveOf(upTo(60, 25), (level) => 2.5 * level),
      expected: { kind: "saturated" },
    },
    {
      why: "latencies of something else",
      curve: curveOf(upTo(20), (level) => (level % 2 === 0 ? 20 : 200)),
      expected: { kind: "scattered" },
    },
  ])("proposes nothing from $why", ({ curve, expected }) => {
    expect(findKnee(curve)).toMatchObject(expected);
  });
});

describe("LatencyCurve", () => {
  test("takes levels with few samples together, and leaves out those that stay few", () => {
    const curve = new LatencyCurve();
    for (const level of [20, 21, 22, 23, 24, 500, 510]) curve.add({ level, latencyMs: level });
    const points = curve.points();
    expect(points).toHaveLength(1);
    expect(points[0]).toMatchObject({ level: 22, count: 5 });
    expect(points[0]?.latencyMs).toBeCloseTo(22);
  });

  test("holds any number of levels in bounded memory", () => {
    const curve = new LatencyCurve();
    for (let level = 1; level < 2e9; level *= 1.01) curve.add({ level, latencyMs: 1 });
    expect(curve.points().length).toBeLessThan(170);
  });
});

describe("fitNonNegative()", () => {
  const line = [() => 1, (x: number) => x];

  test("finds the line through points", () => {
    const points = [1, 2, 3].map((x) => ({ x, y: 1 + 2 * x, weight: 1 }));
    const { coefficients, squaredError } = fitNonNegative(points, line);
    expect(coefficients[0]).toBeCloseTo(1);
    expect(coefficients[1]).toBeCloseTo(2);
    expect(squaredError).toBeCloseTo(0);
  });

  test("leaves out a function that would be subtracted", () => {
    const points = [1, 2, 3].map((x) => ({ x, y: 10 - x, weight: 1 }));
    expect(fitNonNegative(points, line).coefficients).toEqual([8, 0]);
  });
});

describe("staticLimit()", () => {
  test.each([
    { workers: 0.4, limit: 11 },
    { workers: 1, limit: 11 },
    { workers: 20, limit: 27 },
    { workers: 1_000, limit: 1_100 },
  ])("keeps $workers workers busy with $limit", ({ workers, limit }) => {
    expect(staticLimit(workers)).toBe(limit);
  });
});
