import { type RunReport, runSeed } from "../simulation/run.js";
import { oneSeedEnv } from "../support/seeds.js";

/** Which seeds to run. */
export interface SeedRange {
  readonly first: number;
  /** From 1. */
  readonly count: number;
}

/** Time between two lines of progress. */
const progressMs = 2_000;

/** Violations shown of the first seed that fails; the first one matters most. */
const shownMax = 5;

/**
 * Runs the simulation of `test/simulation` over many seeds, telling how far it is.
 *
 * @returns the first seed that failed and how to run it again, in words; undefined when none did
 */
export async function runSeeds({ first, count }: SeedRange): Promise<string | undefined> {
  const startMs = performance.now();
  let reportedMs = startMs;
  let failedCount = 0;
  let firstFailed: RunReport | undefined;
  for (let done = 0; done < count; ) {
    const report = await runSeed(first + done);
    done += 1;
    if (report.violations.length > 0) {
      failedCount += 1;
      firstFailed ??= report;
      process.stderr.write(`\nseed ${report.seed} failed\n`);
    }
    const nowMs = performance.now();
    if (nowMs - reportedMs < progressMs && done < count) continue;
    reportedMs = nowMs;
    const msPerSeed = (nowMs - startMs) / done;
    const leftSeconds = Math.round(((count - done) * msPerSeed) / 1_000);
    const counts = `${done} of ${count} seeds, ${failedCount} failed`;
    process.stderr.write(`\r${counts}, ${msPerSeed.toFixed(0)} ms each, ${leftSeconds} s left   `);
  }
  process.stderr.write("\n");
  return firstFailed === undefined ? undefined : failureText(firstFailed);
}

function failureText({ seed, shape, faults, violations }: RunReport): string {
  return [
    `The first seed that failed is ${seed}. To run it again:`,
    `  ${oneSeedEnv(seed)} npx vitest run --project simulation`,
    `${shape}; faults: ${faults.join(", ")}`,
    ...violations.slice(0, shownMax),
  ].join("\n  ");
}
