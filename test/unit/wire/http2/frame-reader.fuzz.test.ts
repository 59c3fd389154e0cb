import { describe, expect, it } from "vitest";
import { firstSeed, seedCount } from "../../../support/seeds.js";
import { fuzzWire } from "../../../support/wire-fuzz.js";

const seed = firstSeed(1);

/** `npm run bench -- --fuzz 1000000` runs more. */
const inputCount = seedCount(4_000);

describe(`the wire, fed with what nobody should send (seed ${seed}),`, () => {
  it("reads it as plain readers do, in bounded memory", () => {
    expect(fuzzWire({ seed, count: inputCount })).toBeUndefined();
  });
});
