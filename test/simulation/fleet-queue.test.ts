import { describe, expect, it } from "vitest";
import { mean } from "../support/station.js";
import { QueueFleetRun, type QueueSecond } from "./fleet-queue-run.js";
import { lawOf } from "./law-scenarios.js";

const seeds = Array.from({ length: 12 }, (_, i) => i + 1);

const workerCount = 20;

/** Two Envoys before 20 workers of 50 ms: they serve 400 a second, and by default 720 come. */
function overload(seed: number, perSecond = 720): QueueFleetRun {
  return new QueueFleetRun(
    {
      law: lawOf("gradient", { min: 2, initial: 20, max: 400 }),
      envoyCount: 2,
      workerCount,
      serviceMs: 50,
      perSecond,
      patienceMs: 1_000,
      configuredShare: 200,
    },
    seed,
  );
}

function goodput(seconds: readonly QueueSecond[]): number {
  return mean(seconds.map(({ goodputRatio }) => goodputRatio));
}

function meanOverSeeds(of: (seed: number) => number): number {
  return mean(seeds.map(of));
}

/** Each request is drawn, so a single second of a single run may have a bad day. */
describe("FleetLoop, before a queue of single requests", () => {
  /** The first three may pass until it is known that what is in use is a queue. */
  it.each(seeds)("finds the limit in 13 seconds, overloaded from the start (seed %i)", (seed) => {
    const run = overload(seed);
    run.span(13);
    expect(goodput(run.span(10))).toBeGreaterThan(0.8);
  });

  it("follows in five seconds when half of the workers go, and loses next to nothing", () => {
    const followed: number[] = [];
    const served = meanOverSeeds((seed) => {
      const run = overload(seed);
      run.span(60);
      run.change({ workerCount: workerCount / 2 });
      followed.push(run.span(5).at(-1)?.inFlight ?? 0);
      const after = goodput(run.span(20));
      expect(after, `seed ${seed}`).toBeGreaterThan(0.85);
      return after;
    });
    expect(served).toBeGreaterThan(0.93);
    // A limit for ten workers is 18: before, it was 37.
    expect(mean(followed)).toBeLessThan(1.8 * (workerCount / 2));
  });

  /**
   * After a probe none was due for up to half a minute, and steps alone took up to 28 seconds: of
   * these runs, one in four took more than five.
   */
  it("follows as soon when that happens at any time, right after a probe too", () => {
    const followedSeconds = [42, 46, 50, 54, 58].flatMap((settledSeconds) =>
      seeds.map((seed) => {
        const run = overload(seed, 500);
        run.span(settledSeconds);
        run.change({ workerCount: workerCount / 2 });
        const after = run.span(35);
        expect(goodput(after.slice(5)), `seed ${seed}`).toBeGreaterThan(0.85);
        const at = after.findIndex(({ inFlight }) => inFlight <= workerCount);
        return at < 0 ? after.length : at;
      }),
    );
    const late = followedSeconds.filter((seconds) => seconds > 5);
    expect(late.length / followedSeconds.length).toBeLessThanOrEqual(0.1);
    expect(Math.max(...followedSeconds)).toBeLessThanOrEqual(10);
  });

  it("learns the latency of a release that takes twice as long, and keeps to it", () => {
    const served = meanOverSeeds((seed) => {
      const run = overload(seed);
      run.span(60);
      run.change({ serviceMs: 100 });
      run.span(25);
      const after = run.span(60);
      expect(goodput(after), `seed ${seed}`).toBeGreaterThan(0.9);
      expect(after.at(-1)?.minRttMs).toBeGreaterThan(75);
      expect(after.at(-1)?.minRttMs).toBeLessThan(135);
      return goodput(after);
    });
    expect(served).toBeGreaterThan(0.96);
  });

  /**
   * After a long probe none may follow for half a minute. The law went down meanwhile as if workers
   * had gone, found a limit at which latency raised no suspicion, and stayed there for minutes:
   * half of what could be served was refused.
   */
  it.each([30, 43, 89, 105, 138])(
    "learns of one that comes right after a probe, when it may probe again (seed %i)",
    (seed) => {
      const run = overload(seed);
      run.span(60);
      run.change({ serviceMs: 100 });
      run.span(50);
      const after = run.span(40);
      expect(goodput(after)).toBeGreaterThan(0.95);
      expect(after.at(-1)?.minRttMs).toBeGreaterThan(75);
    },
  );

  it("takes no queue for the latency without one, overloaded for a quarter of an hour", () => {
    for (const seed of seeds.slice(0, 3)) {
      const run = overload(seed);
      run.span(60);
      const seconds = run.span(900);
      expect(mean(seconds.map(({ minRttMs = 0 }) => minRttMs))).toBeLessThan(60);
      expect(mean(seconds.map(({ rttMs }) => rttMs))).toBeLessThan(110);
      expect(goodput(seconds)).toBeGreaterThan(0.95);
    }
  });
});

/** Two Envoys before a service that has worked without a limit, at this part of its capacity. */
function adopted(workers: number, seed: number, loadRatio = 0.8): QueueFleetRun {
  return new QueueFleetRun(
    {
      law: lawOf("gradient"),
      envoyCount: 2,
      trafficRatios: [0.8, 0.2],
      workerCount: workers,
      serviceMs: 50,
      perSecond: (loadRatio * workers * 1_000) / 50,
      patienceMs: 1_000,
      configuredShare: 200,
    },
    seed,
  );
}

describe("FleetLoop, before a service that has room", () => {
  /** It began at 50 permits, and a probe lowered that to 20: 38 and 22 % for seven seconds. */
  it.each([100, 200])("refuses next to nobody of %i workers when it begins", (workers) => {
    const served = meanOverSeeds((seed) => {
      const all = goodput(adopted(workers, seed).span(30).slice(1));
      expect(all, `seed ${seed}`).toBeGreaterThan(0.97);
      return all;
    });
    expect(served).toBeGreaterThan(0.99);
  });

  /** Callers left before anybody was served, which looked like idle time: for ever. */
  it.each(seeds)("serves again when nine of ten workers have gone (seed %i)", (seed) => {
    const run = adopted(200, seed);
    run.span(60);
    run.change({ workerCount: 20 });
    run.span(25);
    expect(goodput(run.span(20))).toBeGreaterThan(0.9);
  });
});

/** Two Envoys at so many times the capacity, with four requests in five at one of them. */
function lopsided(workers: number, seed: number, loadRatio = 3): QueueFleetRun {
  return new QueueFleetRun(
    {
      law: lawOf("gradient"),
      envoyCount: 2,
      trafficRatios: [0.8, 0.2],
      workerCount: workers,
      serviceMs: 50,
      perSecond: (loadRatio * workers * 1_000) / 50,
      patienceMs: 1_000,
      configuredShare: 200,
    },
    seed,
  );
}

describe("FleetLoop, where one of two Envoys has most of the traffic", () => {
  /** From 20 permits, which 20 workers need, it went to 8 at once: 45 % for three seconds. */
  it("loses no more than it must while it searches for the first time", () => {
    const worst = meanOverSeeds((seed) => {
      const seconds = lopsided(20, seed).span(27).slice(5);
      return Math.min(...seconds.slice(2).map((_, i) => goodput(seconds.slice(i, i + 3))));
    });
    expect(worst).toBeGreaterThan(0.58);
  });

  /** A second, deeper level took a quarter of what was left for four seconds: 92 %. */
  it("keeps the workers that are left busy from five seconds after a loss of half on", () => {
    const after = meanOverSeeds((seed) => {
      const run = lopsided(workerCount / 2, seed);
      run.span(90);
      run.change({ workerCount: workerCount / 4 });
      run.span(5);
      return goodput(run.span(15));
    });
    expect(after).toBeGreaterThan(0.97);
  });

  /**
   * A probe went to one permit, and each of two Envoys keeps one: it could measure nothing, and the
   * limit from before came back. From then on all who were served had left: 28 %.
   */
  it("keeps a single worker busy at three times its capacity", () => {
    const served = meanOverSeeds((seed) => {
      const run = lopsided(1, seed);
      run.span(40);
      return goodput(run.span(80));
    });
    expect(served).toBeGreaterThan(0.93);
  });

  /** In 40 seconds two runs in three did not: 29 % in the mean. */
  it("serves again when one of ten workers is left", () => {
    const after = meanOverSeeds((seed) => {
      const run = lopsided(10, seed, 0.9);
      run.span(60);
      run.change({ workerCount: 1 });
      run.span(40);
      return goodput(run.span(20));
    });
    expect(after).toBeGreaterThan(0.85);
  });
});
