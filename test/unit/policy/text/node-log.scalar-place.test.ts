import { describe, expect, it } from "vitest";
import { isScalar, parseDocument } from "yaml";
import { placeInScalar } from "../../../../src/policy/text/node-log.js";

/** Where `word` of the value of `a` is shown: the marked text, and the line that it begins on. */
function marked(text: string, word: string): string {
  const node = parseDocument(text, { keepSourceTokens: true }).get("a", true);
  if (!isScalar(node) || node.range === undefined || node.range === null) throw new Error("none");
  const start = String(node.value).indexOf(word);
  const place = placeInScalar(text, node as Parameters<typeof placeInScalar>[1], {
    start,
    end: start + word.length,
  });
  return `${text.slice(0, place.start).split("\n").length}:${text.slice(place.start, place.end)}`;
}

describe("placeInScalar()", () => {
  it.each([
    ["a plain scalar", "a: one two", "two", "1:two"],
    ["single quotes", "a: 'one two'", "two", "1:two"],
    ["single quotes that hold some", "a: 'it''s two'", "two", "1:two"],
    ["a quote itself", "a: 'it''s two'", "'s", "1:''s"],
    ["double quotes", 'a: "one two"', "two", "1:two"],
    ["a literal block", "a: |\n  one\n  two\n", "two", "3:two"],
    ["a literal block with a header", "a: |2-  # why\n    one\n    two\n", "two", "3:two"],
    ["a deeper line of a literal block", "a: |\n  one\n\n    two x\n", "two", "4:two"],
  ])("finds a part of %s", (_, text, word, wanted) => {
    expect(marked(text, word)).toBe(wanted);
  });

  it.each([
    ["escapes", 'a: "\\u006fne two"', "two"],
    ["a folded block", "a: >-\n  one\n  two\n", "two"],
    ["several plain lines", "a: one\n  two", "two"],
    ["several quoted lines", "a: 'one\n\n  two'", "two"],
    ["other line ends", "a: |\r\n  one\r\n  two\r\n", "two"],
  ])("shows the whole of a scalar with %s", (_, text, word) => {
    const whole = text.slice(3);
    expect(whole.startsWith(marked(text, word).slice(2))).toBe(true);
    expect(marked(text, word)).not.toBe("1:two");
  });

  it("marks what follows the last character for a part that is empty", () => {
    const text = "{a: one, b: 1}";
    const node = parseDocument(text).get("a", true);
    if (!isScalar(node)) throw new Error("none");
    const place = placeInScalar(text, node as Parameters<typeof placeInScalar>[1], {
      start: 3,
      end: 3,
    });
    expect(text.slice(place.start, place.end)).toBe(",");
  });
});
