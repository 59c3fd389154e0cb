import { describe, expect, it } from "vitest";
import { CsvFields, splitCsv } from "../../../src/simulate/line-fields.js";
import { logLine } from "../../support/log-line.js";

describe("CsvFields", () => {
  it("reads cells by their titles, also where a line has fewer or more", () => {
    const fields = new CsvFields("x, a,,b", ["a", "none", "b"]);
    const read = (line: string) => {
      expect(fields.take(logLine(line))).toBe(true);
      return [0, 1, 2].map((place) => fields.value(place));
    };
    expect(read("1,2,3,4,5")).toEqual(["2", undefined, "4"]);
    expect(read('1,"2,2"')).toEqual(["2,2", undefined, undefined]);
  });
});

describe("splitCsv()", () => {
  it.each([
    ["a,b,", ["a", "b", ""]],
    ['"a,b",c', ["a,b", "c"]],
    ['a,"",""""', ["a", "", '"']],
    ['"a', ['"a']],
  ])("splits %j", (line, cells) => {
    expect(splitCsv(line)).toEqual(cells);
  });
});
