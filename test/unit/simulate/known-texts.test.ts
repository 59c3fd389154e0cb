import { describe, expect, it } from "vitest";
import { KnownTexts } from "../../../src/simulate/known-texts.js";

describe("KnownTexts", () => {
  it("knows by both texts", () => {
    const known = new KnownTexts<number>(10);
    known.add({ first: "a", last: "bc" }, 1);
    known.add({ first: "ab", last: "c" }, 2);
    expect(known.get({ first: "a", last: "bc" })).toBe(1);
    expect(known.get({ first: "ab", last: "c" })).toBe(2);
    expect(known.get({ first: "a", last: "c" })).toBeUndefined();
  });

  it("holds so much, and then begins anew", () => {
    const known = new KnownTexts<number>(3);
    for (let i = 0; i < 3; i += 1) known.add({ first: `${i % 2}`, last: `${i}` }, i);
    expect(known.size).toBe(3);
    known.add({ first: "1", last: "3" }, 3);
    expect(known.size).toBe(1);
    expect(known.get({ first: "1", last: "3" })).toBe(3);
    expect(known.get({ first: "1", last: "1" })).toBeUndefined();
  });
});
