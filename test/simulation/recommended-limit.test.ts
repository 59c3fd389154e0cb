import { describe, expect, test } from "vitest";
import type { TimeDistribution } from "../../src/policy/scenario/scenario-times.js";
import { findKnee, type LatencyFit } from "../../src/recommend/services/knee-fit.js";
import { RequestSweep } from "../../src/recommend/services/request-sweep.js";
import { observeWindows } from "../../src/recommend/services/service-observations.js";
import { staticLimit } from "../../src/recommend/services/static-limit.js";
import {
  type LoadPhase,
  runWorld,
  type ServiceWorld,
  windowsOf,
} from "../support/service-world.js";

const times = {
  exponential: { kind: "exponential", meanMs: 50 },
  fixed: { kind: "fixed", ms: 50 },
  lognormal: { kind: "lognormal", medianMs: 40, p99Ms: 250 },
  pareto: { kind: "pareto", minMs: 20, maxMs: 2_000, shape: 1.5 },
} as const satisfies Readonly<Record<string, TimeDistribution>>;

const named = { service: "orders", source: "a test" };

/** A day in short: quiet times, and a peak above the capacity. */
const day = phasesOf([0.2, 0.5, 0.8, 1.2, 0.7, 0.3], 150);
const quietDay = phasesOf([0.1, 0.25, 0.4, 0.3], 150);

function phasesOf(ratios: readonly number[], seconds: number): readonly LoadPhase[] {
  return ratios.map((loadRatio) => ({ loadRatio, seconds }));
}

function sweep(world: ServiceWorld, phases: readonly LoadPhase[]) {
  const swept = new RequestSweep();
  for (const request of runWorld(world, phases).requests) swept.add(request);
  return findKnee(swept.finish(named).curve);
}

function seen(verdict: ReturnType<typeof findKnee>): LatencyFit {
  expect(verdict.kind).toBe("seen");
  if (verdict.kind !== "seen") throw new Error(verdict.kind);
  return verdict.fit;
}

/** What a limit gets out of a world at 1.5 times its capacity. */
function underOverload(world: ServiceWorld, limit: number) {
  const { requests } = runWorld(world, phasesOf([1.5], 120), limit);
  const sumUs = requests.reduce((sum, { durationUs }) => sum + durationUs, 0);
  return { served: requests.length, meanUs: sumUs / requests.length };
}

/** The lowest of some limits that serves 99.5 % of what the best of them serves. */
function bestStatic(world: ServiceWorld) {
  const limits = [0.8, 1, 1.1, 1.25, 1.4, 1.6, 2, 3, 6, 12].map((ratio) => {
    return Math.ceil(ratio * world.workers);
  });
  const tried = [...new Set(limits)].map((limit) => underOverload(world, limit));
  const most = Math.max(...tried.map(({ served }) => served));
  const best = tried.find(({ served }) => served >= 0.995 * most);
  if (best === undefined) throw new Error("some limit serves most");
  return best;
}

const worlds = Object.entries(times).flatMap(([name, serviceTime]) =>
  [1, 4, 20].flatMap((workers) =>
    [1, 2].map((contention) => ({ name, workers, contention, serviceTime, seed: 1 })),
  ),
);

describe("a limit that is recommended from an access log", () => {
  test.each(worlds)(
    "is as good as the best: $workers workers, $name, contention $contention",
    (world) => {
      const { knee, perSecondMax } = seen(sweep(world, day));
      const { capacity } = runWorld(world, []);
      expect(knee).toBeGreaterThan(0.8 * world.workers);
      expect(knee).toBeLessThan(1.25 * world.workers);
      expect(perSecondMax / capacity).toBeGreaterThan(0.85);
      expect(perSecondMax / capacity).toBeLessThan(1.15);
      const [best, own] = [bestStatic(world), underOverload(world, staticLimit(knee))];
      expect(own.served).toBeGreaterThan(0.98 * best.served);
      expect(own.meanUs).toBeLessThan(1.35 * best.meanUs);
    },
  );

  test.each([
    { workers: 20, contention: 1 },
    { workers: 20, contention: 2 },
    { workers: 60, contention: 1 },
  ])("is refused when the load stays below 40 %: $workers workers, $contention", (part) => {
    const world = { ...part, serviceTime: times.lognormal, seed: 2 };
    expect(sweep(world, quietDay)).toMatchObject({ kind: "below" });
  });
});

describe("a limit that is recommended from means of ten seconds", () => {
  test.each([
    { workers: 1, kneeMax: 3 },
    { workers: 4, kneeMax: 10 },
    { workers: 20, kneeMax: 25 },
  ])("keeps the throughput, and has a longer queue with few workers: $workers", (row) => {
    const world = { workers: row.workers, serviceTime: times.lognormal, seed: 1 };
    const windows = windowsOf(runWorld(world, day).requests, 10_000);
    const { knee } = seen(findKnee(observeWindows(named, { windows }).curve));
    expect(knee).toBeGreaterThanOrEqual(0.95 * row.workers);
    expect(knee).toBeLessThan(row.kneeMax);
    const best = bestStatic(world);
    expect(underOverload(world, staticLimit(knee)).served).toBeGreaterThan(0.98 * best.served);
  });
});
