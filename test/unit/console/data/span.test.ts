import { expect, it } from "vitest";
import { readSpan } from "../../../../src/console/data/span.js";

it("reads spans as the command line does", () => {
  expect(readSpan("12h30m")).toBe(45_000_000);
  expect(readSpan(" 3d ")).toBe(259_200_000);
  for (const text of ["", "3", "0s", "3 days", "-1h"]) expect(readSpan(text)).toBeUndefined();
});
