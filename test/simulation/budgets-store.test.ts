import { expect, it } from "vitest";
import { MemoryBudgets } from "../../src/store/coordination/memory-budgets.js";
import { FakeClock } from "../support/fake-clock.js";
import { metCount, runSeeds, seedsFrom } from "../support/seeds.js";
import { BudgetRun, type BudgetRunCounts } from "./budget-store-run.js";

/** `npm run soak` runs 10,000. */
const seeds = seedsFrom(1, 500);

it("a ledger of budgets agrees with an exact one, whatever is lost or comes twice", async () => {
  const met: Partial<BudgetRunCounts> = {};
  await runSeeds(seeds, async (seed) => {
    const clock = new FakeClock();
    const run = new BudgetRun(new MemoryBudgets(clock), clock, seed);
    await run.run(200);
    expect(run.violations.slice(0, 5)).toEqual([]);
    for (const [name, count] of Object.entries(run.counts)) {
      const key = name as keyof BudgetRunCounts;
      met[key] = (met[key] ?? 0) + count;
    }
  });
  for (const [name, count] of Object.entries(met)) {
    expect(count, name).toBeGreaterThan(metCount(500));
  }
});
