import { defineConfig, mergeConfig } from "vitest/config";
import unitConfig from "./vitest.mutate.config.js";

/** The contract tests of stores: what stores do with real servers is held there. */
const files = [
  "budget-ledger",
  "budgets",
  "budgets-differential",
  "budgets-redis",
  "cluster",
  "cluster-faults",
  "configured-store",
  "coordination-store",
  "differential",
  "exact-script",
  "give-back",
  "hostile-redis",
  "lost-records",
  "membership",
  "memory",
  "per-second",
  "permit-shares",
  "quota-leases",
  "redis*",
  "regions",
  "replica-questions",
  "rooms*",
  "sentinel",
  "shadow-ledger",
  "shared-loop",
  "shared-records",
  "signal-key",
  "snapshot-store",
];

/** What `npm run mutate` runs for a mutant of `src/store`: contract tests too, one at a time. */
export default mergeConfig(
  unitConfig,
  defineConfig({
    test: { include: [`test/contract/{${files.join(",")}}.test.ts`], testTimeout: 60_000 },
  }),
);
