import { describe, expect, it } from "vitest";
import { fuzzWire } from "../../support/wire-fuzz.js";

const seed = Number(process.env["TEST_SEED"] ?? 1);

/** `npm run bench -- --fuzz 1000000` runs more. */
const inputCount = 20_000;

describe(`the wire, fed with what nobody should send (TEST_SEED=${seed}),`, () => {
  it("reads it as plain readers do, in bounded memory", () => {
    expect(fuzzWire({ seed, count: inputCount })).toBeUndefined();
  });
});
