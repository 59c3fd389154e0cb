import { create } from "@bufbuild/protobuf";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { entryCountMax, textLengthMax } from "../../../../src/decide/rate-limit/query.js";
import { RequestReader, requestProblemsMax } from "../../../../src/rpc/admin/request-reader.js";

/** What is wrong with what a test reads. */
function problemOf(read: (reader: RequestReader) => void): string {
  const reader = new RequestReader();
  read(reader);
  try {
    reader.end();
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : "";
  }
  return "";
}

const entry = { key: "user", value: "7" };

describe("RequestReader", () => {
  it.each([
    [
      "a needed text",
      (r: RequestReader) => r.text("a", " ", { charsMax: 5, isNeeded: true }),
      "a: required",
    ],
    [
      "a long text",
      (r: RequestReader) => r.text("a", "123456", { charsMax: 5 }),
      "a: it has more than 5 characters",
    ],
    [
      "a count",
      (r: RequestReader) => r.count("a", -1, { max: 9, defaultValue: 3 }),
      "a: must be from 0 to 9",
    ],
    [
      "a whole number",
      (r: RequestReader) => r.whole("a", 2n ** 64n - 1n, { min: 0, max: 9 }),
      "a: must be a whole number from 0 to 9",
    ],
    ["a version", (r: RequestReader) => r.version("a", 2n ** 60n), "a: must be a whole number"],
    [
      "no number",
      (r: RequestReader) => r.part("a", Number.NaN, { max: 1 }),
      "a: must be above 0 and at most 1",
    ],
    ["too large a part", (r: RequestReader) => r.part("a", 1.01, { max: 1 }), "a: must be above 0"],
    ["no part", (r: RequestReader) => r.part("a", 0, { max: 1 }), "a: must be above 0"],
    [
      "a time",
      (r: RequestReader) => r.epochMs("a", create(TimestampSchema, { seconds: 2n ** 62n })),
      "a: must be a time",
    ],
    ["no entries", (r: RequestReader) => r.entries("a", []), "a: needs an entry"],
    [
      "entries",
      (r: RequestReader) => r.entries("a", Array(entryCountMax + 1).fill(entry)),
      `a: it has more than ${entryCountMax} entries`,
    ],
    [
      "an empty key",
      (r: RequestReader) => r.entries("a", [entry, { key: "", value: "7" }]),
      "a[1].key: required",
    ],
    [
      "a long value",
      (r: RequestReader) => r.entries("a", [{ key: "u", value: "7".repeat(textLengthMax) }]),
      "a[0]: it has more than",
    ],
  ])("refuses %s", (_what, read, problem) => {
    expect(problemOf(read)).toContain(problem);
  });

  it("takes what is within its bounds", () => {
    const reader = new RequestReader();
    expect(reader.count("a", 0, { max: 9, defaultValue: 3 })).toBe(3);
    expect(reader.part("a", 0, { max: 1, defaultValue: 0.5 })).toBe(0.5);
    expect(reader.part("a", 1, { max: 1 })).toBe(1);
    expect(reader.whole("a", 9n, { min: 0, max: 9 })).toBe(9);
    expect(reader.entries("a", Array(entryCountMax).fill(entry))).toHaveLength(entryCountMax);
    expect(reader.epochMs("a", undefined)).toBeUndefined();
    reader.end();
  });

  it("tells all problems at once, and no more than a person reads", () => {
    const text = problemOf((reader) => {
      for (let i = 0; i < requestProblemsMax + 5; i += 1) reader.report(`f${i}`, "wrong");
    });
    expect(text.split("; ")).toHaveLength(requestProblemsMax);
  });
});
