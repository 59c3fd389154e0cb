import { defineConfig } from "vitest/config";

/**
 * What `npm run mutate` runs for each mutant: the unit tests of the folders that it changes, where
 * each file is tested by those named after it. They share a process, as in vitest.config.ts.
 */
export default defineConfig({
  test: {
    include: ["test/unit/{core,decide,store}/**/*.test.ts"],
    testTimeout: 30_000,
    hookTimeout: 120_000,
    isolate: false,
  },
});
