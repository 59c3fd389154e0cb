import { defineConfig } from "vitest/config";

/** One project a kind of test, so that each kind also runs alone: `npm run unit`, `npm run e2e`. */
const kinds: ReadonlyArray<{ name: string; include: string; testTimeout: number }> = [
  { name: "tidy", include: "test/tidy.test.ts", testTimeout: 30_000 },
  { name: "unit", include: "test/unit/**/*.test.ts", testTimeout: 30_000 },
  { name: "contract", include: "test/contract/**/*.test.ts", testTimeout: 60_000 },
  { name: "golden", include: "test/golden/**/*.test.ts", testTimeout: 30_000 },
  { name: "simulation", include: "test/simulation/**/*.test.ts", testTimeout: 120_000 },
  { name: "fault", include: "test/fault/**/*.test.ts", testTimeout: 120_000 },
  { name: "e2e", include: "test/e2e/**/*.test.ts", testTimeout: 180_000 },
];

export default defineConfig({
  test: {
    projects: kinds.map(({ name, include, testTimeout }) => ({
      test: {
        name,
        include: [include],
        testTimeout,
        hookTimeout: 120_000,
        pool: "forks",
        // Real servers share two cores: the kinds that start processes run one file at a time.
        fileParallelism: !["contract", "simulation", "fault", "e2e"].includes(name),
      },
    })),
  },
});
