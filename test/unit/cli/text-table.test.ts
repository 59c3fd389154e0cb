import { describe, expect, it } from "vitest";
import { drawTable } from "../../../src/cli/text-table.js";

describe("drawTable()", () => {
  it("gives each column the width of its widest cell, and ends lines without spaces", () => {
    const columns = [{ title: "rule" }, { title: "hits", align: "right" }, { title: "" }] as const;
    const rows = [
      ["user", "5", ""],
      ["remote_address", "1000", "much"],
    ];
    expect(drawTable(columns, rows)).toEqual([
      "rule            hits",
      "user               5",
      "remote_address  1000  much",
    ]);
  });

  it("draws the titles where there is no row, and a missing cell as an empty one", () => {
    expect(drawTable([{ title: "a" }, { title: "b" }], [])).toEqual(["a  b"]);
    expect(drawTable([{ title: "a" }, { title: "b" }], [["x"]])).toEqual(["a  b", "x"]);
  });
});
