import { describe, expect, it } from "vitest";
import { readPages } from "../support/docs.js";
import { measure } from "../support/reading.js";

/** Pages whose tables hold the texts of the program: problems, settings, metrics, fields, help. */
const pages = readPages().filter(({ path }) => path.startsWith("docs/reference/"));

/** Cells that say something in sentences, by the row that they are in. */
const cells = pages.flatMap(({ path, text }) =>
  text.split("\n").flatMap((line) => {
    if (!line.startsWith("| ")) return [];
    const [name = "", ...rest] = line.slice(2, -2).split(/(?<!\\) \| /);
    return rest.map((cell) => ({ place: `${path}: ${name.replace(/<[^>]*>/g, "")}`, cell }));
  }),
);

/** A reader at three in the morning reads a longer sentence twice. */
const wordsMax = 35;

/** Turns of phrase that a reader has to translate, each of which once stood in these texts. */
const riddles = [
  /\b(?:is|are) (?:none|told)\b/i,
  /\b(?:put out|looked at|whoever|wherein|that which|stands already)\b/i,
  /\breckon|\bLeft out:/i,
];

describe("texts of the program", () => {
  it("are many: the tables were read", () => {
    expect(cells.length).toBeGreaterThan(1_500);
  });

  it(`have no sentence of more than ${wordsMax} words`, () => {
    const long = cells.flatMap(({ place, cell }) => {
      const { longestSentence, longestText } = measure(cell, []);
      return longestSentence > wordsMax ? [`${place}: ${longestSentence}: ${longestText}`] : [];
    });
    expect(long).toEqual([]);
  });

  it("have no riddles", () => {
    const found = cells.filter(({ cell }) => riddles.some((riddle) => riddle.test(cell)));
    expect(found.map(({ place, cell }) => `${place}: ${cell}`)).toEqual([]);
  });
});
