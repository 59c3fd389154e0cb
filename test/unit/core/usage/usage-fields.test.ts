import { describe, expect, it } from "vitest";
import {
  parseCount,
  usageFromHeaders,
  usageFromMetadata,
} from "../../../../src/core/usage/usage-fields.js";

describe("parseCount()", () => {
  it.each([
    ["0", 0],
    ["007", 7],
    ["2.01", 3],
    ["1e3", 1_000],
    ["1099511627777", 1_099_511_627_776],
    ["", undefined],
    ["-1", undefined],
    ["+1", undefined],
    ["0x10", undefined],
    ["Infinity", undefined],
    ["1 2", undefined],
    ["1.", undefined],
  ])("reads %j as %s", (text, count) => {
    expect(parseCount(text)).toBe(count);
  });
});

describe("usageFromHeaders()", () => {
  const fields = { inputTokens: "x-in", customUnits: "x-gpu-seconds" };

  it("reads counts by the names of headers", () => {
    const headers = new Map([
      ["x-in", " 12 "],
      ["x-gpu-seconds", "0.5"],
      ["x-out", "9"],
    ]);
    expect(usageFromHeaders(fields, headers)).toEqual({ inputTokens: 12, customUnits: 1 });
  });

  it("says nothing where no header has a count", () => {
    expect(usageFromHeaders(fields, new Map([["x-in", "many"]]))).toBeUndefined();
  });
});

describe("usageFromMetadata()", () => {
  const fields = { inputTokens: ["llm", "in"], outputTokens: ["out"] };

  it("reads counts by their paths", () => {
    const values = new Map<string, string | number>([
      ["llm.in", 3.5],
      ["out", "7"],
      ["in", 1],
    ]);
    expect(usageFromMetadata(fields, values)).toEqual({ inputTokens: 4, outputTokens: 7 });
  });

  it.each<{ values: [string, number | boolean][] }>([
    { values: [] },
    { values: [["out", true]] },
    { values: [["llm.in", -1]] },
    { values: [["llm.in", Number.NaN]] },
  ])("says nothing of $values", ({ values }) => {
    expect(usageFromMetadata(fields, new Map(values))).toBeUndefined();
  });
});
