import { describe, expect, it } from "vitest";
import { limitHz } from "../../src/core/quota/quota-ceiling.js";
import { seedsFrom } from "../support/seeds.js";
import { jainIndex, lookAtQuotas } from "./quota-report.js";
import { type DemandShape, QuotaRun, type QuotaScenario } from "./quota-run.js";
import { bigQuotas, demandOf, fairWeather, quotaLimits, smallQuotas } from "./quota-scenarios.js";

const seeds = seedsFrom(1, 12);

/** One pool of equals, with nothing that goes wrong. */
function onePool(
  name: keyof typeof quotaLimits,
  order: {
    readonly count: number;
    readonly replicaCount: number;
    readonly shape: DemandShape;
    readonly load: number;
    readonly callsLoad?: number;
  },
): QuotaScenario {
  const { count, replicaCount, shape, load, callsLoad = 0 } = order;
  const limit = quotaLimits[name];
  const hz = load * limitHz(limit);
  const pool = {
    limit,
    callsShare: callsLoad > 0 ? 0.1 : 0,
    callsHz: callsLoad * limitHz(limit),
    weights: Array.from({ length: count }, () => 1),
    demandHz: demandOf(shape, { hz, count }),
    shape,
  };
  return { envoyCount: count, replicaCount, pools: [pool], weather: fairWeather };
}

function sum(values: readonly number[]): number {
  return values.reduce((all, value) => all + value, 0);
}

describe("quotas in foul weather", () => {
  it.each(seeds)("stay within their bounds, and are fair and used afterwards (seed %i)", (seed) => {
    const look = lookAtQuotas(smallQuotas(seed), seed);
    expect(look.violations).toEqual([]);
    for (const ratio of look.utilisations) expect(ratio).toBeGreaterThan(0.93);
    for (const ratio of look.tinyUtilisations) expect(ratio).toBeGreaterThan(0.7);
    for (const index of look.fairness) expect(index).toBeGreaterThan(0.95);
  });

  it("stay within their bounds for 1,000 Envoys with about 10,000 buckets", () => {
    const run = new QuotaRun(bigQuotas(1, 12_000), 1);
    run.span(20);
    expect(run.violations).toEqual([]);
    expect(run.reportCount).toBeGreaterThan(10_000);
  });
});

describe("a quota", () => {
  it.each([
    { name: "fast", count: 10, replicaCount: 1 },
    { name: "fast", count: 30, replicaCount: 3 },
    { name: "roomy", count: 30, replicaCount: 3 },
    { name: "tight", count: 30, replicaCount: 3 },
    { name: "vast", count: 30, replicaCount: 3 },
    { name: "lone", count: 10, replicaCount: 1 },
  ] as const)(
    "of $name is used to 95 %, by $count equals of $replicaCount replicas alike",
    ({ name, count, replicaCount }) => {
      const run = new QuotaRun(onePool(name, { count, replicaCount, shape: "even", load: 2 }), 1);
      run.span(60);
      const [span] = run.span(120);
      const allowed = span?.allowed ?? [];
      expect(sum(allowed)).toBeGreaterThan(0.95 * 120 * limitHz(quotaLimits[name]));
      expect(jainIndex(allowed)).toBeGreaterThan(0.95);
      expect(run.violations).toEqual([]);
    },
  );

  it.each(seeds.slice(0, 4))("goes to who asks, within two reports (seed %i)", (seed) => {
    const scenario = onePool("fast", { count: 10, replicaCount: 1, shape: "even", load: 2 });
    const [pool] = scenario.pools;
    if (pool === undefined) throw new Error("a pool");
    // At first the first one asks for everything, and then another one does.
    const demandHz = (place: number, nowMs: number): number => {
      if (place > 1) return 0.2;
      return nowMs < 60_000 === (place === 0) ? 300 : 0.2;
    };
    const run = new QuotaRun({ ...scenario, pools: [{ ...pool, demandHz }] }, seed);
    run.span(50);
    const [before] = run.span(10);
    run.span(12);
    const [after] = run.span(10);
    expect(before?.allowed[0]).toBeGreaterThan(0.85 * 1_000);
    expect(after?.allowed[1]).toBeGreaterThan(0.85 * 1_000);
  });

  it("gives callers of the same limit their part, and takes the rest", () => {
    const order = { count: 10, replicaCount: 2, shape: "even", load: 2, callsLoad: 2 } as const;
    const run = new QuotaRun(onePool("fast", order), 1);
    run.span(60);
    const [span] = run.span(60);
    const all = sum(span?.allowed ?? []) + (span?.callHits ?? 0);
    expect(span?.callHits).toBeGreaterThan(0.08 * 6_000);
    expect(all).toBeGreaterThan(0.95 * 6_000);
    expect(all).toBeLessThan(1.05 * 6_000);
    expect(run.violations).toEqual([]);
  });

  it("comes to rest at half of its burst", () => {
    const order = { count: 10, replicaCount: 1, shape: "even", load: 3 } as const;
    const run = new QuotaRun(onePool("roomy", order), 1);
    run.span(120);
    expect(run.level(0)).toBeGreaterThan(400);
    expect(run.level(0)).toBeLessThan(600);
  });
});
