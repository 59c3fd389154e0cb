import { describe, expect, it } from "vitest";
import { parseDocument } from "yaml";
import { editText, type TextEdit } from "../../../../src/policy/edit/edit-text.js";

function edit(text: string, change: TextEdit): string {
  const edited = editText(text, change);
  return edited.kind === "edited" ? edited.text : `! ${edited.message}`;
}

function set(path: TextEdit["path"]): TextEdit {
  const entries = [
    { name: "count", value: "20", comment: "from 9" },
    { name: "burst", value: "5", comment: "new" },
  ];
  return { kind: "set", path, entries };
}

describe("editText()", () => {
  it("replaces and adds lines of a map, and keeps all others with their comments", () => {
    const text = "# top\na:\n  count: 9 # old\n  # kept\n  unit: day\n# end\nb: 1\n";
    expect(edit(text, set(["a"]))).toBe(
      "# top\na:\n  count: 20 # from 9\n  # kept\n  unit: day\n  burst: 5 # new\n# end\nb: 1\n",
    );
  });

  it("gives a map in braces a line for each name", () => {
    const text = "a:\n  b: {unit: day, count: 9, to: [x, y]} # why\nc: 1\n";
    expect(edit(text, set(["a", "b"]))).toBe(
      "a:\n  b:\n    unit: day\n    count: 20 # from 9\n    to: [x, y]\n" +
        "    burst: 5 # new # why\nc: 1\n",
    );
  });

  it("gives an item in braces a line for each name, behind its dash", () => {
    const text = "a:\n  - {count: 9, unit: day}\n  - {count: 1}\n";
    expect(edit(text, set(["a", 0]))).toBe(
      "a:\n  - count: 20 # from 9\n    unit: day\n    burst: 5 # new\n  - {count: 1}\n",
    );
  });

  it("stays in braces within braces", () => {
    const text = "a:\n  - {key: x, b: {count: 9}}\n";
    const after = edit(text, set(["a", 0, "b"]));
    expect(after).toContain("    count: 20, # from 9\n");
    expect(parseDocument(after).toJS()).toEqual({ a: [{ key: "x", b: { count: 20, burst: 5 } }] });
  });

  it("adds lines behind the last item, and before what stands behind the list", () => {
    const text = "a:\n  - x: 1\n    y: 2 # two\n\nb: 1";
    const lines = ["- x: 3", "  y: 4"];
    expect(edit(text, { kind: "append", path: ["a"], lines })).toBe(
      "a:\n  - x: 1\n    y: 2 # two\n  - x: 3\n    y: 4\n\nb: 1",
    );
    expect(edit(text, { kind: "append", path: [], lines: ["c: 2"] })).toBe(`${text}\nc: 2`);
  });

  it("adds lines behind a block text and behind a nested block", () => {
    const text = "a:\n  t: |\n    one\n    two\n";
    expect(edit(text, { kind: "append", path: ["a"], lines: ["u: 1"] })).toBe(`${text}  u: 1\n`);
    const nested = "a:\n  - b:\n      - c\n      - d\ne: 1\n";
    expect(edit(nested, { kind: "append", path: ["a"], lines: ["- f"] })).toBe(
      "a:\n  - b:\n      - c\n      - d\n  - f\ne: 1\n",
    );
  });

  it("adds a line to a list in brackets", () => {
    const lines = ["- [{header: x}]"];
    expect(edit("a: [[b]]\n", { kind: "append", path: ["a"], lines })).toBe(
      "a: [[b], [{header: x}]]\n",
    );
    expect(edit("a: [] # none\n", { kind: "append", path: ["a"], lines })).toBe(
      "a: [[{header: x}]] # none\n",
    );
  });

  it("keeps the line breaks of the text", () => {
    expect(edit("a:\r\n  count: 9\r\nb: 1\r\n", set(["a"]))).toBe(
      "a:\r\n  count: 20 # from 9\r\n  burst: 5 # new\r\nb: 1\r\n",
    );
  });

  it("says what it cannot edit", () => {
    expect(edit("a: *x\nx: &x {count: 1}\n", set(["a"]))).toMatch(/^! "a" is not written there/);
    expect(edit("a: 1\n", set(["__proto__"]))).toMatch(/^! "__proto__" is not written there/);
    expect(edit("a: [1]\n", set(["a"]))).toBe('! "a" is not a map');
    expect(edit("a: {b: 1}\n", { kind: "append", path: ["a"], lines: ["c: 2"] })).toBe(
      '! "a" is in braces; write it in lines of its own',
    );
  });
});
