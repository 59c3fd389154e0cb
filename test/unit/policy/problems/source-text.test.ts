import { describe, expect, it } from "vitest";
import { excerptCharsMax, SourceText } from "../../../../src/policy/problems/source-text.js";

function sourceOf(text: string): SourceText {
  return new SourceText({ file: "a.yaml", text }, 0);
}

describe("SourceText", () => {
  it.each([
    { what: "the start", text: "ab\ncd", offset: 0, line: 1, column: 1 },
    { what: "a line end", text: "ab\ncd", offset: 2, line: 1, column: 3 },
    { what: "the next line", text: "ab\ncd", offset: 3, line: 2, column: 1 },
    { what: "after CRLF", text: "ab\r\ncd", offset: 5, line: 2, column: 2 },
    { what: "after a byte order mark", text: "\ufeffab\ncd", offset: 1, line: 1, column: 2 },
    { what: "after an emoji", text: "😀b", offset: 2, line: 1, column: 3 },
    { what: "the end", text: "ab\n", offset: 3, line: 2, column: 1 },
    { what: "beyond the end", text: "ab", offset: 99, line: 1, column: 3 },
    { what: "an empty text", text: "", offset: 0, line: 1, column: 1 },
  ])("finds line and column of $what", ({ text, offset, line, column }) => {
    expect(sourceOf(text).position(offset)).toEqual({ line, column });
  });

  it("marks a range in its line, without the line's end", () => {
    const source = sourceOf("first\r\nkey: value\r\nlast");
    expect(source.excerpt({ start: 12, end: 17 })).toEqual({
      text: "key: value",
      start: 5,
      length: 5,
    });
  });

  it("marks a range of several lines to the end of its first", () => {
    expect(sourceOf("ab cd\nef").excerpt({ start: 3, end: 8 })).toEqual({
      text: "ab cd",
      start: 3,
      length: 2,
    });
  });

  it("marks one place for an empty range", () => {
    expect(sourceOf("ab").excerpt({ start: 2, end: 2 })).toMatchObject({ start: 2, length: 1 });
  });

  it("counts characters, not code units, up to the mark", () => {
    expect(sourceOf("😀😀 x😀y").excerpt({ start: 5, end: 9 })).toEqual({
      text: "😀😀 x😀y",
      start: 3,
      length: 3,
    });
  });

  it("shows only the part of a long line around the place", () => {
    const source = sourceOf(`${"a".repeat(5_000)}HERE${"b".repeat(5_000)}`);
    const { text, start, length } = source.excerpt({ start: 5_000, end: 5_004 });
    expect(text.slice(start, start + length)).toBe("HERE");
    expect(text).toMatch(/^\.\.\.a+HEREb+\.\.\.$/);
    expect(text.length).toBe(excerptCharsMax + 6);
  });

  it("keeps the mark inside the part it shows", () => {
    const { text, start, length } = sourceOf("x".repeat(500)).excerpt({ start: 10, end: 400 });
    expect(start + length).toBe(excerptCharsMax);
    expect(text).toBe(`${"x".repeat(excerptCharsMax)}...`);
  });

  it("shows tabs as spaces and other control characters as replacements", () => {
    expect(sourceOf("a\tb\u0007c").excerpt({ start: 4, end: 5 })).toEqual({
      text: "a b\ufffdc",
      start: 4,
      length: 1,
    });
  });
});
