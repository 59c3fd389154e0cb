import { describe, expect, it } from "vitest";
import { many } from "../../../../src/core/base/many.js";

describe("many()", () => {
  it("counts one file, and several files", () => {
    expect([0, 1, 2].map((count) => many(count, "file"))).toEqual(["0 files", "1 file", "2 files"]);
  });
});
