import { describe, expect, it } from "vitest";
import { parseEntries, selectedEntriesMax } from "../../../../src/cli/terminal/key-selector.js";

describe("parseEntries()", () => {
  it.each([
    ["user=ann", [["user", "ann"]]],
    [
      "plan=free,user=ann",
      [
        ["plan", "free"],
        ["user", "ann"],
      ],
    ],
    ["user", [["user", ""]]],
    ["user=", [["user", ""]]],
    ["q=a=b", [["q", "a=b"]]],
    ["q=a\\,b\\\\", [["q", "a,b\\"]]],
    ["a\\=b=c", [["a=b", "c"]]],
    ["path=/x\\y", [["path", "/x\\y"]]],
  ])("reads %s", (text, wanted) => {
    expect(parseEntries(text).map(({ key, value }) => [key, value])).toEqual(wanted);
  });

  it.each(["", "=ann", "plan=free,", ",user=ann"])("refuses %o", (text) => {
    expect(() => parseEntries(text)).toThrow("an entry without a key");
  });

  it("takes so many entries, and no more", () => {
    const text = (count: number) => Array.from({ length: count }, (_, i) => `k${i}=v`).join(",");
    expect(parseEntries(text(selectedEntriesMax))).toHaveLength(selectedEntriesMax);
    expect(() => parseEntries(text(selectedEntriesMax + 1))).toThrow("at most");
  });
});
