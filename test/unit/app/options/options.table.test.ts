import { describe, expect, it } from "vitest";
import { optionNames, optionRow } from "../../../../src/app/options/options.js";
import { renderOptionTable } from "../../../support/option-tables.js";

describe("renderOptionTable()", () => {
  it("has one row for every option, in tables of four columns", () => {
    const rows = renderOptionTable()
      .split("\n")
      .filter((line) => line.startsWith("| `"));
    expect(rows).toHaveLength(optionNames.length);
    for (const row of rows) expect(row.replaceAll("\\|", "").split("|")).toHaveLength(6);
    for (const name of optionNames) {
      const { env } = optionRow(name);
      expect(rows.filter((row) => row.startsWith(`| \`${env}\``))).toHaveLength(1);
    }
  });

  it("shows a secret's file and no flag for it", () => {
    expect(renderOptionTable()).toMatch(/^\| `REDIS_AUTH`, `REDIS_AUTH_FILE` \| {2}\| {2}\| /m);
  });
});
