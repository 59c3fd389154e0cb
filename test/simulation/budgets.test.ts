import { describe, expect, it } from "vitest";
import { metCount, runSeeds, seedsFrom } from "../support/seeds.js";
import { BudgetRun } from "./budget-run.js";

/** Runs of the usual test; `npm run soak` has 20 times as many. */
const runCount = 500;

describe("budgets of a fleet in foul weather", () => {
  it("admit no more than was stated beside capacities, and charge each call once", async () => {
    const met: Record<string, number> = {};
    await runSeeds(seedsFrom(1, runCount), async (seed) => {
      const run = new BudgetRun(seed);
      await run.run();
      expect(run.violations).toEqual([]);
      for (const [name, count] of Object.entries(run.counts)) {
        met[name] = (met[name] ?? 0) + count;
      }
    });
    // Else nothing was tried.
    const least = { reserved: 20, refused: 10, failureAdmitted: 1, failureRefused: 1, late: 0.1 };
    for (const [name, perRun] of Object.entries({ ...least, killed: 0.2, unreserved: 0.5 })) {
      expect(met[name], name).toBeGreaterThanOrEqual(Math.floor(metCount(runCount * perRun)));
    }
  });
});
