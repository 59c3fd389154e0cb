import { describe, expect, it } from "vitest";
import { type KneeFit, LatencyByLevel } from "../../../../src/core/concurrency/latency-by-level.js";
import {
  type DrawMs,
  exponentialMs,
  fixedMs,
} from "../../../../src/simulate/engine/distributions.js";
import { FakeRandom } from "../../../support/fake-random.js";

interface Sight {
  /** Levels that are seen, from and to. */
  readonly levels: readonly [number, number];
  readonly countEach: number;
  readonly workerCount: number;
  /** Of one request alone. Default: always 50 ms */
  readonly workMs?: DrawMs;
}

function look(
  seen: LatencyByLevel,
  { levels, countEach, workerCount, workMs = fixedMs(50) }: Sight,
): void {
  for (let level = levels[0]; level <= levels[1]; level += 1) {
    for (let i = 0; i < countEach; i += 1) {
      seen.add(level, workMs() * Math.max(1, level / workerCount));
    }
  }
}

function fitOf(...sights: readonly Sight[]): KneeFit | undefined {
  const seen = new LatencyByLevel();
  for (const sight of sights) look(seen, sight);
  return seen.fit();
}

describe("LatencyByLevel", () => {
  it("knows nothing before a round trip", () => {
    expect(fitOf()).toBeUndefined();
  });

  it("finds how many are served at once, and how long each takes", () => {
    const fit = fitOf({ levels: [1, 16], countEach: 20, workerCount: 10 });
    expect(fit?.knee).toBeCloseTo(10);
    expect(fit?.serviceMs).toBeCloseTo(50);
    expect(fit?.lowest).toBeGreaterThanOrEqual(8);
    expect(fit).toMatchObject({ isOpen: false, isFlat: false });
  });

  it("finds them in times that scatter", () => {
    const workMs = exponentialMs(new FakeRandom(7), 50);
    const fit = fitOf({ levels: [1, 30], countEach: 60, workerCount: 10, workMs });
    expect(fit?.knee).toBeGreaterThan(8);
    expect(fit?.knee).toBeLessThan(12);
    expect(fit?.serviceMs).toBeGreaterThan(43);
    expect(fit?.serviceMs).toBeLessThan(57);
    expect(fit?.dispersion).toBeGreaterThan(0.8);
  });

  it("finds hundreds, which it sees in steps", () => {
    const fit = fitOf({ levels: [100, 400], countEach: 5, workerCount: 200 });
    expect(fit?.knee).toBeGreaterThan(180);
    expect(fit?.knee).toBeLessThan(220);
  });

  it("sees no queue where many take as long as few", () => {
    const fit = fitOf({ levels: [2, 9], countEach: 20, workerCount: 10 });
    expect(fit).toMatchObject({ isOpen: true, isFlat: true, isFlatter: true });
  });

  it("sees none where there was never more than one", () => {
    const fit = fitOf({ levels: [1, 1], countEach: 20, workerCount: 1 });
    expect(fit).toMatchObject({ isOpen: true, isFlat: true, lowest: 1 });
  });

  it("cannot tell where all is above the knee", () => {
    const fit = fitOf({ levels: [20, 40], countEach: 20, workerCount: 10 });
    expect(fit).toMatchObject({ lowest: 0, isFlat: false, isFlatter: false });
  });

  it("believes newer round trips of a level", () => {
    const seen = new LatencyByLevel();
    look(seen, { levels: [1, 16], countEach: 100, workerCount: 10 });
    look(seen, { levels: [1, 16], countEach: 500, workerCount: 5 });
    expect(seen.fit()?.knee).toBeCloseTo(5);
  });

  it("forgets in half a minute, or in as many round trips as count where those are few", () => {
    const seen = new LatencyByLevel();
    look(seen, { levels: [1, 16], countEach: 20, workerCount: 10 });
    seen.age(3_600_000, 1, 10);
    expect(seen.fit()?.knee).toBeCloseTo(10);
    seen.age(300_000, 4_000, 10);
    expect(seen.fit()).toBeUndefined();
  });

  it("takes what callers who leave have waited for a time that is cut off", () => {
    const seen = new LatencyByLevel();
    const workMs = exponentialMs(new FakeRandom(7), 50);
    for (let i = 0; i < 4_000; i += 1) {
      const level = 1 + (i % 30);
      const rttMs = workMs() * Math.max(1, level / 10);
      // Of these most leave where many are in flight, and no round trip is longer.
      seen.add(level, Math.min(rttMs, 60), rttMs > 60);
    }
    expect(seen.fit()?.knee).toBeGreaterThan(8);
    expect(seen.fit()?.knee).toBeLessThan(12);
    expect(seen.fit()?.serviceMs).toBeGreaterThan(43);
    expect(seen.fit()?.serviceMs).toBeLessThan(57);
  });

  it("knows nothing where all have left", () => {
    const seen = new LatencyByLevel();
    for (let level = 1; level < 30; level += 1) seen.add(level, 1_000, true);
    expect(seen.fit()).toBeUndefined();
  });

  it("forgets all when it is told to", () => {
    const seen = new LatencyByLevel();
    look(seen, { levels: [1, 16], countEach: 20, workerCount: 10 });
    seen.clear();
    expect(seen.fit()).toBeUndefined();
  });

  it("forgets what is above the knee sooner", () => {
    const seen = new LatencyByLevel();
    look(seen, { levels: [1, 16], countEach: 100, workerCount: 10 });
    seen.age(30_000, 1_000, 10);
    look(seen, { levels: [13, 16], countEach: 50, workerCount: 5 });
    expect(seen.fit()?.knee).toBeLessThan(8);
    expect(seen.fit()?.serviceMs).toBeCloseTo(50, -1);
  });
});
