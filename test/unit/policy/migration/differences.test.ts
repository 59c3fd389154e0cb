import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { DifferenceRow } from "../../../../src/policy/migration/difference-row.js";
import { differenceRows } from "../../../../src/policy/migration/differences.js";

const rows = Object.entries<DifferenceRow>(differenceRows);

/** Where each row is shown by a test that begins with its id. */
const folder = "test/e2e";

/** The ids that tests begin with, each once, in the order of the files. */
function shownIds(): readonly string[] {
  const files = readdirSync(folder).filter((name) =>
    /^drop-in-.*differences\.test\.ts$/.test(name),
  );
  const ids = files.flatMap((name) => {
    const text = readFileSync(`${folder}/${name}`, "utf8");
    return [...text.matchAll(/^ {2}it\("([a-z-]+): /gm)].map(([, id = ""]) => id);
  });
  return [...new Set(ids)];
}

describe("differenceRows", () => {
  it("has a test for each row, and no test has a row that is gone", () => {
    expect([...shownIds()].sort()).toEqual(rows.map(([id]) => id).sort());
  });

  it("begins with what limits do, and what happens without Redis", () => {
    expect(rows.slice(0, 2).map(([id]) => id)).toEqual(["smooth-limits", "store-failure"]);
  });

  it("speaks in whole sentences, and gives switches that are settings", () => {
    for (const [id, { reference, headgate, choice }] of rows) {
      for (const text of [reference, headgate]) expect([id, text]).toEqual([id, sentence]);
      if (choice !== undefined) expect([id, choice]).toEqual([id, setting]);
    }
  });
});

const sentence: unknown = expect.stringMatching(/^[A-Z][^\n]+\.$/);
const setting: unknown = expect.stringMatching(/^`[A-Z_]+=[\w.]+`/);
