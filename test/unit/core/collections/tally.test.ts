import { describe, expect, it } from "vitest";
import { Tally } from "../../../../src/core/collections/tally.js";

describe("Tally", () => {
  it("adds up by key, and keeps no key of which nothing is left", () => {
    const tally = new Tally<string>();
    expect([tally.add("a", 2), tally.add("b", 5), tally.add("a", 1)]).toEqual([2, 5, 3]);
    expect([tally.get("a"), tally.get("b"), tally.get("c"), tally.size]).toEqual([3, 5, 0, 2]);
    expect([tally.add("a", -1), tally.add("a", -2)]).toEqual([2, 0]);
    expect([tally.get("a"), tally.size]).toEqual([0, 1]);
  });

  it("tells who takes more than was there, and goes on from 0", () => {
    const tally = new Tally<string>();
    expect([tally.add("a", -1), tally.get("a"), tally.size]).toEqual([-1, 0, 0]);
  });
});
