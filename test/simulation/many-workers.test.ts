import { describe, expect, it } from "vitest";
import { mean } from "../support/station.js";
import { HeadgateProtection } from "./goodput-admission.js";
import { GoodputRun } from "./goodput-run.js";

interface Service {
  readonly workerCount: number;
  /** Default 50 */
  readonly serviceMs?: number;
  readonly loadRatio: number;
  /** Default: a bound alone */
  readonly limits?: string;
  readonly seed: number;
}

/** A service behind a policy with nothing but a name and the bounds of its limit. */
function manyWorkers(service: Service): GoodputRun {
  const { workerCount, serviceMs = 50, loadRatio, limits = "max: 5000", seed } = service;
  const world = {
    workerCount,
    serviceMs,
    loadRatio,
    parts: { critical: 0.1, high: 0.2, normal: 0.4 },
    patienceMs: 20 * serviceMs,
    changes: [],
  };
  const blocks = `admission: {}, concurrency: {limits: {${limits}}}`;
  return new GoodputRun(
    world,
    seed,
    (calendar) => new HeadgateProtection(calendar, { blocks, seed }),
  );
}

describe("a learned limit, before hundreds of workers", () => {
  /**
   * The last requests of a level to end are the long ones, and a hundred of them end in a fraction
   * of a round trip here: levels that were just left looked like a queue. It rested at 183 of 500
   * workers, and at 311 under overload.
   */
  it.each([
    { loadRatio: 0.9, seed: 1 },
    { loadRatio: 0.9, seed: 2 },
    { loadRatio: 3, seed: 1 },
  ])("keeps them busy at $loadRatio times their capacity (seed $seed)", ({ loadRatio, seed }) => {
    const run = manyWorkers({ workerCount: 500, loadRatio, seed });
    run.span(6_000);
    const { usefulRatio, p99Ms } = run.span(10_000);
    expect(usefulRatio / Math.min(1, loadRatio)).toBeGreaterThan(0.97);
    expect(p99Ms).toBeLessThan(400);
  });

  /**
   * It begins with 50 permits, so a Headgate that restarts before a healthy service refuses what
   * that has done all along until it has grown. In this second and a half it served 58 % of what is
   * possible at 0.8 times the capacity, and 55 % at three times it, in steps of half a second.
   */
  it.each([
    { loadRatio: 0.8, seed: 1 },
    { loadRatio: 0.8, seed: 2 },
    { loadRatio: 3, seed: 1 },
    { loadRatio: 3, seed: 2 },
  ])("is soon found at $loadRatio times their capacity (seed $seed)", ({ loadRatio, seed }) => {
    const run = manyWorkers({ workerCount: 200, loadRatio, seed });
    run.span(500);
    const { usefulRatio } = run.span(1_500);
    expect(usefulRatio / Math.min(1, loadRatio)).toBeGreaterThan(0.75);
  });

  /**
   * With one permit, as after an outage, ten requests of two seconds take twenty, and looking at
   * less than that tells nothing. Some of these runs stayed at one or two permits for minutes: the
   * mean was 42 % of what is possible at both loads.
   */
  it.each([{ loadRatio: 0.8 }, { loadRatio: 3 }])(
    "is found from one permit at $loadRatio times their capacity",
    ({ loadRatio }) => {
      const seeds = Array.from({ length: 12 }, (_, index) => index + 1);
      const ratios = seeds.map((seed) => {
        const slow = { workerCount: 200, serviceMs: 2_000, limits: "initial: 1" };
        const run = manyWorkers({ ...slow, loadRatio, seed });
        run.span(30_000);
        return run.span(30_000).usefulRatio / Math.min(1, loadRatio);
      });
      expect(mean(ratios)).toBeGreaterThan(0.65);
    },
  );
});
