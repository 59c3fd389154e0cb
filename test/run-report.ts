import { missingOptionalMark, missingProgramMark } from "./support/programs.js";

/** What came of one test. */
export interface TestOutcome {
  readonly name: string;
  readonly state: "passed" | "failed" | "skipped" | "pending";
  /** Messages of its own errors and of those in hooks around it. */
  readonly errors: readonly string[];
}

/** What came of one test file. */
export interface FileOutcome {
  readonly path: string;
  readonly isFailed: boolean;
  /** Why the file itself failed: it could not be loaded, or a hook of the file threw. */
  readonly errors: readonly string[];
  readonly tests: readonly TestOutcome[];
}

/** What came of a part of the suite. Each string is one line for a person. */
export interface Tally {
  readonly passedCount: number;
  readonly failures: readonly string[];
  /** What did not run: for want of a program, or because a test says skip. */
  readonly notRun: readonly string[];
}

/** One check that is not a vitest test. */
export function tallyCheck(name: string, exitCode: number): Tally {
  return exitCode === 0
    ? { passedCount: 1, failures: [], notRun: [] }
    : { passedCount: 0, failures: [`${name} ended with exit code ${exitCode}`], notRun: [] };
}

/** Counts the tests of a file. A file that fails without a failed test counts as one failure. */
export function tallyFile({ path, isFailed, errors, tests }: FileOutcome): Tally {
  let passedCount = 0;
  const failures: string[] = [];
  const notRun: string[] = [];
  for (const test of tests) {
    const line = `${path} > ${test.name}`;
    const missing = missingProgramIn(test.errors);
    if (test.state === "passed") passedCount += 1;
    else if (missing !== undefined) notRun.push(`${line} (${missing})`);
    else if (test.state === "failed" || test.errors.length > 0) failures.push(line);
    else notRun.push(`${line} (${test.state})`);
  }
  const missing = missingProgramIn([...errors, ...tests.flatMap((test) => test.errors)]);
  if (isFailed && failures.length === 0) {
    if (missing === undefined) failures.push(path);
    else if (tests.length === 0) notRun.push(`${path} (${missing})`);
  }
  return { passedCount, failures, notRun };
}

/** The first line of what `requireProgram` threw. */
function missingProgramIn(messages: readonly string[]): string | undefined {
  const marks = `(?:${missingProgramMark}|${missingOptionalMark})`;
  return new RegExp(`${marks} .*`).exec(messages.join("\n"))?.[0];
}

/** Several tallies as one. */
export function addTallies(tallies: readonly Tally[]): Tally {
  return {
    passedCount: tallies.reduce((sum, { passedCount }) => sum + passedCount, 0),
    failures: tallies.flatMap(({ failures }) => failures),
    notRun: tallies.flatMap(({ notRun }) => notRun),
  };
}

/** How a run ends. */
export interface Conclusion {
  readonly exitCode: 0 | 1;
  /** What to print; the last line reads `N passed, N failed` or `N passed, N failed, N skipped`. */
  readonly lines: readonly string[];
}

/**
 * Lists what failed and what did not run, and judges: nothing may fail, something must pass, and on
 * CI everything must run but what needs an optional program, so there each other test that did not
 * run counts as failed.
 */
export function conclude(tally: Tally, { isCi }: { readonly isCi: boolean }): Conclusion {
  const { passedCount, failures, notRun } = tally;
  const isSkipped = (line: string): boolean => !isCi || line.includes(missingOptionalMark);
  const skippedCount = notRun.filter(isSkipped).length;
  const failedCount = failures.length + notRun.length - skippedCount;
  const skipped = skippedCount === 0 ? "" : `, ${skippedCount} skipped`;
  return {
    exitCode: failedCount === 0 && passedCount > 0 ? 0 : 1,
    lines: [
      ...section("Failed:", failures),
      ...section("Not run:", notRun.filter(isSkipped)),
      ...section(
        "Not run, which CI does not accept:",
        notRun.filter((line) => !isSkipped(line)),
      ),
      ...(passedCount + failedCount === 0 ? ["No test ran."] : []),
      `${passedCount} passed, ${failedCount} failed${skipped}`,
    ],
  };
}

function section(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [title, ...lines.map((line) => `  ${line}`), ""];
}

/** When a test file ran, on one monotonic clock, in milliseconds. */
export interface FileTime {
  readonly kind: string;
  readonly path: string;
  readonly startMs: number;
  readonly endMs: number;
}

/** How many of the slowest files are told. */
const slowestCount = 10;

/**
 * Where the time went: for each kind the time from its first file's start to its last one's end,
 * in which files run side by side; then the slowest files.
 */
export function timeLines(times: readonly FileTime[], totalSeconds: number): readonly string[] {
  const kinds = [...new Set(times.map(({ kind }) => kind))];
  const rows = kinds.map((kind) => {
    const own = times.filter((time) => time.kind === kind);
    const startMs = Math.min(...own.map((time) => time.startMs));
    const endMs = Math.max(...own.map((time) => time.endMs));
    const workMs = own.reduce((sum, time) => sum + tookMs(time), 0);
    const work = `${own.length} files of ${seconds(workMs).trim()} in all`;
    return `${seconds(endMs - startMs)}  ${kind.padEnd(10)}  ${work}`;
  });
  const slowest = [...times].sort((a, b) => tookMs(b) - tookMs(a)).slice(0, slowestCount);
  return [
    "Time by kind:",
    ...rows.map((row) => `  ${row}`),
    `  ${seconds(1_000 * totalSeconds)}  in all`,
    "",
    "Slowest files:",
    ...slowest.map((time) => `  ${seconds(tookMs(time))}  ${time.path}`),
  ];
}

function tookMs({ startMs, endMs }: FileTime): number {
  return endMs - startMs;
}

function seconds(durationMs: number): string {
  return `${(durationMs / 1_000).toFixed(1).padStart(7)} s`;
}
