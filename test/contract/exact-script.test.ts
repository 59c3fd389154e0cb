import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ceilMulDiv, floorMulDiv } from "../../src/core/base/safe-integer-math.js";
import { exactText } from "../../src/store/redis/scripts/exact-text.js";
import { enginesFor, historiesOn } from "../support/engines.js";
import { RedisServer } from "../support/redis-server.js";
import { propertyRuns } from "../support/seeds.js";

interface Terms {
  readonly a: number;
  readonly b: number;
  readonly c: number;
  readonly cap: number;
}

/** The ranges that `floorMulDiv` names, but for c: with any cap, cap * c must stay below 2^102. */
const aMax = 2 ** 53 - 1;
const cMax = 2 ** 49;
const capMax = 2 ** 53 - 4;

/** Products in the exact range; beside a multiple of c the quotient's rounding shows. */
const smallArbitrary: fc.Arbitrary<Terms> = fc
  .record({ c: fc.integer({ min: 1, max: 2 ** 26 }), quotient: fc.nat(2 ** 26), off: fc.nat(2) })
  .map(({ c, quotient, off }) => ({ a: Math.max(0, quotient * c - off), b: 1, c, cap: capMax }));

/** Beside a multiple of c whose quotient is large: the division rounds up to a whole number. */
const roundedArbitrary: fc.Arbitrary<Terms> = fc
  .record({ c: fc.integer({ min: 2 ** 18, max: 2 ** 20 }), quotient: fc.nat(2 ** 32) })
  .map(({ c, quotient }) => ({ a: Math.max(0, quotient * c - 1), b: 1, c, cap: capMax }));

/** Products far beyond 2^53 with quotients near it: every bit of the error terms counts. */
const largeArbitrary: fc.Arbitrary<Terms> = fc
  .record({
    a: fc.integer({ min: 2 ** 40, max: aMax }),
    b: fc.integer({ min: 2 ** 30, max: 2 ** 48 }),
    ratio: fc.double({ min: 0.25, max: 4, noNaN: true }),
  })
  .map(({ a, b, ratio }) => {
    const c = Math.max(1, Math.min(cMax, Math.floor((a / 2 ** 52) * b * ratio)));
    return { a, b, c, cap: capMax };
  });

const anyArbitrary: fc.Arbitrary<Terms> = fc.record({
  a: fc.integer({ min: 0, max: aMax }),
  b: fc.integer({ min: 0, max: 2 ** 52 }),
  c: fc.integer({ min: 1, max: cMax }),
  cap: fc.integer({ min: 0, max: capMax }),
});

const termsArbitrary = fc.oneof(smallArbitrary, roundedArbitrary, largeArbitrary, anyArbitrary);

const script = `${exactText}
local reply, at = {}, 1
while at <= #ARGV[1] do
  local a, b, c, cap
  a, b, c, cap, at = struct.unpack('<dddd', ARGV[1], at)
  reply[#reply + 1] = struct.pack('<dd', floorMulDiv(a, b, c, cap), ceilMulDiv(a, b, c, cap))
end
return table.concat(reply)`;

describe.each(enginesFor.scripts)("the script's arithmetic on %s", (engine) => {
  let server: RedisServer;

  beforeAll(async () => {
    server = await RedisServer.start({ engine });
  });

  afterAll(async () => {
    await server?.stop();
  });

  const runs = propertyRuns(historiesOn(engine, 100));

  it(`equals core/base/safe-integer-math on ${runs.numRuns},000 triples`, async () => {
    const control = server.client();
    const property = fc.asyncProperty(
      fc.array(termsArbitrary, { minLength: 1_000, maxLength: 1_000 }),
      async (list) => {
        const packed = Buffer.from(
          new Float64Array(list.flatMap(({ a, b, c, cap }) => [a, b, c, cap])).buffer,
        );
        const reply = await control.callBuffer("eval", [script, "0", packed]);
        if (!Buffer.isBuffer(reply)) throw new Error("no bytes");
        const answered = list.map((_, i) => [
          reply.readDoubleLE(i * 16),
          reply.readDoubleLE(i * 16 + 8),
        ]);
        const expected = list.map(({ a, b, c, cap }) => [
          floorMulDiv(a, b, c, cap),
          ceilMulDiv(a, b, c, cap),
        ]);
        const wrong = list.find((_, i) => String(answered[i]) !== String(expected[i]));
        expect(wrong).toBeUndefined();
      },
    );
    await fc.assert(property, { ...runs, endOnFailure: true });
  });
});
