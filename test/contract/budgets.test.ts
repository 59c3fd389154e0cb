import { describe } from "vitest";
import { MemoryBudgets } from "../../src/store/coordination/memory-budgets.js";
import { openClockedBudgets } from "../support/budgets.js";
import { enginesFor } from "../support/engines.js";
import { FakeClock } from "../support/fake-clock.js";
import { shareTestStore } from "../support/redis-store.js";
import { describeBudgets } from "./budget-cases.js";

describe("budgets in memory", () => {
  describeBudgets(() => {
    const clock = new FakeClock();
    return { store: new MemoryBudgets(clock), clock };
  });
});

describe.each(enginesFor.scripts)("budgets over %s", (engine) => {
  const shared = shareTestStore(engine);
  let worldCount = 0;

  describeBudgets(() => {
    worldCount += 1;
    const clock = new FakeClock();
    const { connections } = shared.opened;
    const keyPrefix = `world${worldCount}:`;
    return { store: openClockedBudgets({ connections, clock, keyPrefix }), clock };
  });
});
