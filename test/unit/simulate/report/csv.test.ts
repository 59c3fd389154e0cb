import { expect, it } from "vitest";
import { writeCsv } from "../../../../src/simulate/report/csv.js";

it("writes CSV in which no caller's text is a formula", () => {
  const rows = [
    ["key", "hits"],
    ['say "hi", all', 3],
    ["=1+1", undefined],
    ["@x\ny", 0.5],
  ];
  expect(writeCsv(rows)).toBe('key,hits\r\n"say ""hi"", all",3\r\n\'=1+1,\r\n"\'@x\ny",0.5\r\n');
});
