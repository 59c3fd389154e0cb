import { describe, expect, it } from "vitest";
import {
  compareRanks,
  lowestRank,
  parseRank,
} from "../../../../src/store/coordination/snapshot-version.js";

describe("compareRanks()", () => {
  it("goes by term, then by name, then by version", () => {
    const ranks = ["0 0 0", "1 a 9", "1 b 1", "1 b 2", "2 a 1", "10 a 1"].map((text) => {
      const rank = parseRank(text);
      if (rank === undefined) throw new Error(text);
      return rank;
    });
    expect(ranks[0]).toEqual(lowestRank);
    const shuffled = ranks.toReversed();
    expect(shuffled.toSorted(compareRanks)).toEqual(ranks);
    for (const rank of ranks) expect(compareRanks(rank, { ...rank })).toBe(0);
  });
});

describe("parseRank()", () => {
  it("reads a rank of the store, and nothing else", () => {
    const rank = { term: 7, leaderId: "5f3a", version: 42 };
    expect(parseRank("7 5f3a 42")).toEqual(rank);
    const wrong = ["", "7 5f3a", "7 5f3a 42 ", "7 5F3A 42", "-7 5f3a 42", "7 node 1", "1 a 1e3"];
    for (const text of [...wrong, `${"9".repeat(16)} a 1`]) {
      expect(parseRank(text), text).toBeUndefined();
    }
  });
});
