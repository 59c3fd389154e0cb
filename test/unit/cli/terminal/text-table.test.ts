import { describe, expect, it } from "vitest";
import { drawTable } from "../../../../src/cli/terminal/text-table.js";

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

  it("lets wide columns give way, by a cut or by a line below", () => {
    const columns = [
      { title: "rule" },
      { title: "limits", isFlexible: true, isWrapped: true, paint: (cell: string) => `<${cell}>` },
      { title: "key", isFlexible: true },
      { title: "hits", align: "right" },
    ] as const;
    const rows = [["user", "pace: 5 per 10s, burst 20", "plan=free,user=annie", "7"]];
    expect(drawTable(columns, rows, 46)).toEqual([
      "rule  limits            key               hits",
      "user  <pace: 5 per 10s,>  plan=free,user=…     7",
      "      <burst 20>",
    ]);
  });

  it("takes from no column what it needs at least", () => {
    const columns = [
      { title: "rule", isFlexible: true },
      { title: "key", isFlexible: true, columnsMin: 20 },
    ] as const;
    const [, line] = drawTable(columns, [["r".repeat(30), "k".repeat(30)]], 32);
    expect(line).toBe(`${"r".repeat(9)}…  ${"k".repeat(19)}…`);
  });

  it("keeps no line shorter than what must stay", () => {
    const columns = [{ title: "a" }, { title: "b", isFlexible: true }] as const;
    const [, line] = drawTable(columns, [["stays as it is", "x".repeat(30)]], 10);
    expect(line).toBe(`stays as it is  ${"x".repeat(7)}…`);
  });
});
