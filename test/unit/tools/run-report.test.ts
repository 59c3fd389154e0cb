import { describe, expect, it } from "vitest";
import {
  addTallies,
  conclude,
  type FileOutcome,
  type FileTime,
  type Tally,
  tallyCheck,
  tallyFile,
  timeLines,
} from "../../run-report.js";

const missing = "MISSING PROGRAM envoy: there is no usable envoy on PATH; install it";

const missingOptional = "MISSING OPTIONAL PROGRAM kafka: there is no Java; install it";

function file(parts: Partial<FileOutcome>): FileOutcome {
  return { path: "a.test.ts", isFailed: false, errors: [], tests: [], ...parts };
}

const cases: readonly { readonly title: string; file: FileOutcome; tally: Tally }[] = [
  {
    title: "tests that passed, failed or were skipped",
    file: file({
      isFailed: true,
      tests: [
        { name: "one", state: "passed", errors: [] },
        { name: "two", state: "failed", errors: ["expected 1"] },
        { name: "three", state: "skipped", errors: [] },
      ],
    }),
    tally: {
      passedCount: 1,
      failures: ["a.test.ts > two"],
      notRun: ["a.test.ts > three (skipped)"],
    },
  },
  {
    title: "tests that a failed hook kept from running, as failed",
    file: file({
      isFailed: true,
      tests: [{ name: "one", state: "skipped", errors: ["hook threw"] }],
    }),
    tally: { passedCount: 0, failures: ["a.test.ts > one"], notRun: [] },
  },
  {
    title: "tests that lacked a program, in themselves or in a hook, as not run",
    file: file({
      isFailed: true,
      tests: [
        { name: "one", state: "failed", errors: [missing] },
        { name: "two", state: "skipped", errors: [missing, "stop() of undefined"] },
      ],
    }),
    tally: {
      passedCount: 0,
      failures: [],
      notRun: [`a.test.ts > one (${missing})`, `a.test.ts > two (${missing})`],
    },
  },
  {
    title: "a file that could not be loaded, as one failure",
    file: file({ isFailed: true, errors: ["Cannot find module"] }),
    tally: { passedCount: 0, failures: ["a.test.ts"], notRun: [] },
  },
  {
    title: "a file that lacked a program while it was loaded, as not run",
    file: file({ isFailed: true, errors: [missing] }),
    tally: { passedCount: 0, failures: [], notRun: [`a.test.ts (${missing})`] },
  },
  {
    title: "a file that failed after all of its tests had passed, as one failure",
    file: file({
      isFailed: true,
      errors: ["afterAll threw"],
      tests: [{ name: "one", state: "passed", errors: ["afterAll threw"] }],
    }),
    tally: { passedCount: 1, failures: ["a.test.ts"], notRun: [] },
  },
];

describe("tallyFile()", () => {
  it.each(cases)("counts $title", (row) => {
    expect(tallyFile(row.file)).toEqual(row.tally);
  });
});

describe("conclude()", () => {
  const passed = tallyCheck("lint", 0);
  const failed = tallyCheck("typecheck", 2);
  const notRun: Tally = { passedCount: 0, failures: [], notRun: ["x (skipped)"] };
  const optional = tallyFile(file({ isFailed: true, errors: [missingOptional] }));

  it.each([
    { tallies: [passed], isCi: true, exitCode: 0, last: "1 passed, 0 failed" },
    { tallies: [passed, failed], isCi: false, exitCode: 1, last: "1 passed, 1 failed" },
    { tallies: [passed, notRun], isCi: false, exitCode: 0, last: "1 passed, 0 failed, 1 skipped" },
    { tallies: [passed, notRun], isCi: true, exitCode: 1, last: "1 passed, 1 failed" },
    { tallies: [passed, optional], isCi: true, exitCode: 0, last: "1 passed, 0 failed, 1 skipped" },
    { tallies: [], isCi: false, exitCode: 1, last: "0 passed, 0 failed" },
    { tallies: [notRun], isCi: false, exitCode: 1, last: "0 passed, 0 failed, 1 skipped" },
  ])("ends with '$last' and exit code $exitCode (CI: $isCi)", (row) => {
    const { exitCode, lines } = conclude(addTallies(row.tallies), { isCi: row.isCi });
    expect(lines.at(-1)).toBe(row.last);
    expect(exitCode).toBe(row.exitCode);
  });

  it("lists what failed and what did not run", () => {
    const { lines } = conclude(addTallies([passed, failed, notRun]), { isCi: false });
    expect(lines).toEqual([
      "Failed:",
      "  typecheck ended with exit code 2",
      "",
      "Not run:",
      "  x (skipped)",
      "",
      "1 passed, 1 failed, 1 skipped",
    ]);
  });
});

describe("timeLines()", () => {
  it("tells each kind from its first start to its last end, and the slowest files first", () => {
    const times: readonly FileTime[] = [
      { kind: "unit", path: "test/unit/a.test.ts", startMs: 1_000, endMs: 1_250 },
      { kind: "unit", path: "test/unit/b.test.ts", startMs: 1_000, endMs: 3_000 },
      { kind: "e2e", path: "test/e2e/c.test.ts", startMs: 3_000, endMs: 13_000 },
    ];
    expect(timeLines(times, 14)).toEqual([
      "Time by kind:",
      "      2.0 s  unit        2 files of 2.3 s in all",
      "     10.0 s  e2e         1 files of 10.0 s in all",
      "     14.0 s  in all",
      "",
      "Slowest files:",
      "     10.0 s  test/e2e/c.test.ts",
      "      2.0 s  test/unit/b.test.ts",
      "      0.3 s  test/unit/a.test.ts",
    ]);
  });

  it("names ten files at most", () => {
    const times = Array.from({ length: 11 }, (_, i) => {
      return { kind: "unit", path: String(i), startMs: 0, endMs: i };
    });
    const lines = timeLines(times, 1);
    expect(lines.slice(lines.indexOf("Slowest files:"))).toHaveLength(11);
  });
});
