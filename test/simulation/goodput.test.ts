import { describe, expect, it } from "vitest";
import { HeadgateProtection } from "./goodput-admission.js";
import {
  runWorld,
  searchBest,
  tellMatrix,
  tellResult,
  type VerdictName,
  verdictNames,
} from "./goodput-matrix.js";
import { GoodputRun } from "./goodput-run.js";
import {
  readGoodputTable,
  tableSeeds,
  tuningSeeds,
  validationSeeds,
  zoneSeeds,
} from "./goodput-table.js";
import { drawMatrixWorld } from "./goodput-worlds.js";

/**
 * Worlds that miss a verdict, at most. Lower a number with what makes it lower; never raise one.
 * Each world is judged by all its runs together, so that chance makes few of these misses.
 */
const sets: readonly {
  readonly name: string;
  readonly seeds: readonly number[];
  readonly missedCountMax: Readonly<Record<VerdictName, number>>;
}[] = [
  {
    name: "laws were tuned by",
    seeds: tuningSeeds,
    missedCountMax: { goodput: 12, critical: 14, late: 10, p99: 17 },
  },
  {
    name: "nobody looked at",
    seeds: validationSeeds,
    missedCountMax: { goodput: 17, critical: 14, late: 13, p99: 21 },
  },
  {
    name: "lose one of two zones",
    seeds: zoneSeeds,
    missedCountMax: { goodput: 1, critical: 2, late: 1, p99: 8 },
  },
];

/**
 * The worst worlds of each verdict, with how much is missing at most, in parts of what is asked:
 * those that are so now, and those that were before something made them better.
 */
const worst: readonly {
  readonly name: string;
  readonly verdict: VerdictName;
  readonly seed: number;
  readonly missingMax: number;
}[] = [
  {
    name: "slow spells that outlast what the law remembers, while capacity doubles",
    verdict: "goodput",
    seed: 1_055,
    missingMax: 0.089,
  },
  {
    name: "two hundred workers of 2 s, found from one permit, with little more asked than done",
    verdict: "goodput",
    seed: 1_089,
    missingMax: 0,
  },
  {
    name: "two replicas that begin with all that comes at a cold service",
    verdict: "critical",
    seed: 84,
    missingMax: 0.001,
  },
  {
    name: "two replicas before 200 workers, where critical requests are most of a heavy tail",
    verdict: "critical",
    seed: 52,
    missingMax: 0,
  },
  {
    // In 40 runs of it 99.2 % are served, by this law and by the one before; in these three 98.2.
    name: "two replicas before one worker, one request in a hundred ten times as long",
    verdict: "critical",
    seed: 66,
    missingMax: 0.015,
  },
  {
    name: "one worker whose slow spells fill a queue that was right before",
    verdict: "late",
    seed: 1_130,
    missingMax: 0,
  },
  {
    name: "two hundred workers of 2 s that pause, with little more asked than done",
    verdict: "p99",
    seed: 1_042,
    missingMax: 4.62,
  },
  {
    name: "ten workers that begin cold and lose five, where critical requests fill the rest",
    verdict: "p99",
    seed: 1_014,
    missingMax: 4.53,
  },
];

/** A few worlds whose best static limit is searched anew, by their place. */
const rechecked = [3, 120, 240, 310];

describe("the goodput matrix", async () => {
  const rows = await readGoodputTable();
  const resultsOf = new Map(rows.map(({ one, best }) => [one.seed, () => runWorld(one, best)]));
  const results = new Map<number, ReturnType<typeof runWorld>>();
  const resultOf = (seed: number): ReturnType<typeof runWorld> => {
    const result = results.get(seed) ?? resultsOf.get(seed)?.();
    if (result === undefined) throw new Error(`no world of seed ${seed}`);
    results.set(seed, result);
    return result;
  };

  it("has a best static limit for each seed", () => {
    expect(rows.map(({ one }) => one.seed)).toEqual(tableSeeds);
  });

  it.each(sets)("holds worlds that $name against them", (set) => {
    const own = set.seeds.map(resultOf);
    const reported = tellMatrix(own);
    process.stdout.write(`${reported}\n`);
    for (const verdict of verdictNames) {
      const missed = own.filter(({ missing }) => missing[verdict] > 0);
      expect(missed.length, reported).toBeLessThanOrEqual(set.missedCountMax[verdict]);
    }
  });

  it.each(worst)("$name: $verdict, seed $seed", (one) => {
    const result = resultOf(one.seed);
    expect(result.missing[one.verdict], tellResult(result)).toBeLessThanOrEqual(one.missingMax);
  });

  it("answers in 300 ms what ten workers of 50 ms take on at three times their load", () => {
    for (let seed = 1; seed <= 12; seed += 1) {
      const parts = { critical: 0.1, high: 0.2, normal: 0.4 };
      const times = { serviceMs: 50, patienceMs: 1_000, changes: [] };
      const world = { workerCount: 10, loadRatio: 3, parts, ...times };
      const blocks = "admission: {}, concurrency: {limits: {initial: 1000}}";
      const run = new GoodputRun(world, seed, (calendar) => {
        return new HeadgateProtection(calendar, { blocks, seed });
      });
      run.span(3_000);
      const { p99Ms, servedRatio } = run.span(22_000);
      expect(p99Ms, `seed ${seed}`).toBeLessThan(300);
      expect(servedRatio.critical, `seed ${seed}`).toBeGreaterThan(0.999);
    }
  });

  // Its limit once fell for a minute, to a quarter of what it can serve, and none of that showed.
  it.each([
    ["heavyTailed", 1.1],
    ["heavyTailed", 3],
    ["autocorrelated", 1.1],
    ["autocorrelated", 3],
  ] as const)("keeps a large service busy whose times are %s, at %d x", (service, loadRatio) => {
    const parts = { critical: 0.2 / loadRatio, high: 0.3, normal: 0.3 };
    const times = { serviceMs: 500, patienceMs: 10_000, changes: [] };
    const world = { workerCount: 200, service, loadRatio, parts, ...times };
    const run = new GoodputRun(world, 5, (calendar) => {
      return new HeadgateProtection(calendar, { blocks: "admission: {}", seed: 5 });
    });
    run.span(60_000);
    expect(run.span(60_000).usefulRatio).toBeGreaterThan(0.9);
  });

  // In each of them the limit once stayed at one permit for as long as it ran.
  it.each([100_822, 300_952, 300_889])("grows from one permit (seed %i)", (seed) => {
    const one = drawMatrixWorld(seed, 20_000);
    const result = runWorld(one, searchBest(one));
    for (const verdict of ["goodput", "critical", "late"] as const) {
      expect(result.missing[verdict], tellResult(result)).toBeLessThanOrEqual(0);
    }
  });

  // The limit stayed at forty, since callers that gave up at their deadlines counted as answered.
  it.each([300_033, 300_645, 301_181])("finds one worker from a thousand (seed %i)", (seed) => {
    const one = drawMatrixWorld(seed, 20_000);
    const result = runWorld(one, searchBest(one));
    expect(result.missing.goodput, tellResult(result)).toBeLessThanOrEqual(0);
  });

  it.each(rechecked)("has what a search finds (row %i)", (place) => {
    const row = rows[place];
    expect(row && searchBest(row.one)).toEqual(row?.best);
  });
});
