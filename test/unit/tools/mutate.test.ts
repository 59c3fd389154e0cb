import { describe, expect, it } from "vitest";
import { drawSample, folderOf, folders, type Mutant, mutantKey } from "../../mutate/sample.js";
import {
  belowFloors,
  type Outcome,
  summarize,
  survivorLines,
  tableLines,
} from "../../mutate/summary.js";

/** A mutant that turns a number into another one, in a line that counts from 0. */
function mutantAt(path: string, line: number, original = `${line}`): Mutant {
  return {
    path,
    start: { line, column: 0 },
    end: { line, column: original.length },
    mutatorName: "Number",
    original,
    replacement: "-1",
  };
}

const manyMutants = folders.flatMap((folder) =>
  Array.from({ length: 400 }, (_, i) => mutantAt(`src/${folder}/${i % 20}.ts`, i)),
);

const keysOf = (mutants: readonly Mutant[]) => mutants.map(mutantKey);

describe("drawSample()", () => {
  it("draws the same mutants for the same seed, and others for another one", () => {
    const draw = (seed: number) => keysOf(drawSample(manyMutants, { seed, folders, count: 100 }));
    expect(draw(1)).toEqual(draw(1));
    expect(draw(1)).not.toEqual(draw(2));
    expect(new Set(draw(1)).size).toBe(100);
  });

  it.each([
    { name: "the usual counts", count: undefined, wanted: [250, 180, 90] },
    { name: "parts of another count", count: 52, wanted: [25, 18, 9] },
    { name: "parts that have to be rounded", count: 10, wanted: [5, 3, 2] },
    { name: "all there is", count: 100_000, wanted: [400, 400, 400] },
    { name: "nothing", count: 0, wanted: [0, 0, 0] },
  ])("spreads over the folders: $name", ({ count, wanted }) => {
    const drawn = drawSample(manyMutants, { seed: 1, folders, count });
    const countOf = (folder: string) => drawn.filter(({ path }) => folderOf(path) === folder);
    expect(folders.map((folder) => countOf(folder).length)).toEqual(wanted);
  });

  it("draws from many files of a folder, in the order of the source", () => {
    const drawn = drawSample(manyMutants, { seed: 1, folders: ["core"], count: 100 });
    expect(new Set(drawn.map(({ path }) => path)).size).toBe(20);
    const inOrder = manyMutants.filter((mutant) => drawn.includes(mutant));
    expect(drawn).toEqual(inOrder);
  });

  it("draws one folder alone as in a run of all", () => {
    const all = drawSample(manyMutants, { seed: 3, folders });
    const alone = drawSample(manyMutants, { seed: 3, folders: ["decide"] });
    expect(alone).toEqual(all.filter(({ path }) => path.startsWith("src/decide/")));
  });

  it("keeps its sample when lines are added above, and grows without a change", () => {
    const linesOf = (mutants: readonly Mutant[]) => mutants.map(({ original }) => original);
    const moved = manyMutants.map(({ path, start, original }) =>
      mutantAt(path, start.line + 7, original),
    );
    const options = { seed: 1, folders, count: 100 };
    const drawn = drawSample(manyMutants, options);
    expect(linesOf(drawSample(moved, options))).toEqual(linesOf(drawn));
    const larger = drawSample(manyMutants, { ...options, count: 200 });
    expect(larger).toEqual(expect.arrayContaining([...drawn]));
  });

  it("tells changes apart that are alike in one file", () => {
    const alike = Array.from({ length: 100 }, (_, line) => mutantAt("src/core/a.ts", line, "0"));
    const linesOf = (seed: number) =>
      drawSample(alike, { seed, folders: ["core"], count: 10 }).map(({ start }) => start.line);
    expect(linesOf(1)).toHaveLength(10);
    expect(linesOf(1)).not.toEqual(linesOf(2));
  });
});

const judged = (
  [
    ["src/core/a.ts", "killed"],
    ["src/core/a.ts", "killed"],
    ["src/core/b.ts", "timedOut"],
    ["src/core/b.ts", "survived"],
    ["src/core/b.ts", "noCoverage"],
    ["src/core/b.ts", "error"],
    ["src/core/b.ts", "notRun"],
    ["src/store/c.ts", "killed"],
  ] satisfies readonly (readonly [string, Outcome])[]
).map(([path, outcome], line) => ({ mutant: mutantAt(path, line), outcome }));

describe("summarize()", () => {
  it("counts by folder: hangs are caught, and what could not be judged does not count", () => {
    expect(summarize(judged)).toEqual([
      {
        folder: "core",
        counts: { killed: 2, survived: 1, noCoverage: 1, timedOut: 1, error: 1, notRun: 1 },
        caughtRatio: 0.6,
      },
      {
        folder: "store",
        counts: { killed: 1, survived: 0, noCoverage: 0, timedOut: 0, error: 0, notRun: 0 },
        caughtRatio: 1,
      },
    ]);
  });

  it("is told as a table", () => {
    expect(tableLines(summarize(judged))).toEqual([
      "folder  killed  survived  no coverage  timed out  errors  not run   caught",
      "  core       2         1            1          1       1        1   60.0 %",
      " store       1         0            0          0       0        0  100.0 %",
    ]);
  });

  it("names the folders that are below their floor", () => {
    const floors = { core: 0.61, decide: 1, store: 1 };
    expect(belowFloors(summarize(judged), floors)).toEqual([
      "core: 60.0 % caught, wanted 61.0 % or more",
    ]);
    expect(belowFloors(summarize(judged), { ...floors, core: 0.6 })).toEqual([]);
  });
});

describe("survivorLines()", () => {
  it("lists survivors with their line and change, then what no test runs", () => {
    expect(survivorLines(judged)).toEqual([
      "src/core/b.ts:4 Number  3 → -1",
      "",
      "No test runs these:",
      "src/core/b.ts:5 Number  4 → -1",
    ]);
  });

  it("writes long code in one short line", () => {
    const mutant = mutantAt("src/core/a.ts", 0, `{\n  ${"x".repeat(200)}\n}`);
    const [line = ""] = survivorLines([{ mutant, outcome: "survived" }]);
    expect(line).toBe(`src/core/a.ts:1 Number  { ${"x".repeat(97)}… → -1`);
  });
});
