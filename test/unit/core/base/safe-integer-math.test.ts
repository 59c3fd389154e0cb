import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ceilMulDiv, floorMulDiv } from "../../../../src/core/base/safe-integer-math.js";
import { propertyRuns } from "../../../support/seeds.js";

const two = (exponent: number): number => 2 ** exponent;

/** What one call is asked. */
interface Case {
  readonly a: number;
  readonly b: number;
  readonly c: number;
  readonly cap: number;
}

/** Throws unless both functions say what whole numbers without limit say. */
function check({ a, b, c, cap }: Case): void {
  const product = BigInt(a) * BigInt(b);
  const divisor = BigInt(c);
  const floor = product / divisor;
  const ceil = (product + divisor - 1n) / divisor;
  const least = (value: bigint): number => Number(value < BigInt(cap) ? value : BigInt(cap));
  const got = { floor: floorMulDiv(a, b, c, cap), ceil: ceilMulDiv(a, b, c, cap) };
  const want = { floor: least(floor), ceil: least(ceil) };
  // A matcher a case would cost more than the arithmetic.
  if (got.floor !== want.floor || got.ceil !== want.ceil) {
    throw new Error(`${a} * ${b} / ${c}, cap ${cap}: ${JSON.stringify({ got, want })}`);
  }
}

/**
 * The largest cap that the documented ranges leave to a divisor: cap * c <= 2^102, cap <= 2^53 - 4.
 * One more step of 4 was once allowed: 510 * 1_094_992_850_576_356 / 62 is above 2^53, and the
 * estimate 2^53 + 2, corrected in steps of 1 that doubles do not have there, fell below it.
 */
function capMax(c: number): number {
  const most = two(102) / c;
  if (most >= two(53) - 4) return two(53) - 4;
  // 2^102 / c may have rounded up.
  const whole = Math.floor(most);
  return BigInt(whole) * BigInt(c) > 1n << 102n ? whole - 1 : whole;
}

/** Whole numbers from `min` to 2^`exponent`, as often small or next to a power of two as large. */
function wholes(min: number, exponent: number): fc.Arbitrary<number> {
  const max = two(exponent);
  const nearPower = fc
    .tuple(fc.integer({ min: 0, max: exponent }), fc.integer({ min: -3, max: 3 }))
    .map(([power, off]) => Math.min(max, Math.max(min, two(power) + off)));
  const ofSize = fc
    .integer({ min: 0, max: exponent })
    .chain((size) =>
      fc
        .double({ min: 0, max: 1, noNaN: true })
        .map((part) => Math.max(min, Math.floor(part * two(size)))),
    );
  return fc.oneof(nearPower, ofSize);
}

const divisors = wholes(1, 52);
const factors = wholes(0, 53);

const cases: fc.Arbitrary<Case> = fc
  .record({ a: factors, b: factors, c: divisors, capWish: fc.option(factors) })
  .map(({ a, b, c, capWish }) => ({ a, b, c, cap: Math.min(capWish ?? two(53), capMax(c)) }));

/** The b for which a * b comes next to quotient * c, moved by `off`; within 0 and 2^53. */
function factorFor(quotient: number, { a, c, off }: { a: number; c: number; off: number }): number {
  if (a === 0) return 0;
  const wanted = Number((BigInt(quotient) * BigInt(c)) / BigInt(a)) + off;
  return Math.min(two(53), Math.max(0, wanted));
}

/**
 * Products that fall on, or just beside, a multiple of the divisor, and results next to the cap.
 */
const nearCases: fc.Arbitrary<Case> = fc
  .record({
    a: wholes(1, 53),
    c: divisors,
    wish: factors,
    off: fc.integer({ min: -2, max: 2 }),
    capOff: fc.integer({ min: -5, max: 5 }),
  })
  .map(({ a, c, wish, off, capOff }) => {
    const most = capMax(c);
    const quotient = Math.min(wish, most);
    const cap = Math.min(most, Math.max(0, quotient + capOff));
    return { a, b: factorFor(quotient, { a, c, off }), c, cap };
  });

/** What the law asks: units that drain, and the time in which units drain. */
const lawCases: fc.Arbitrary<Case> = fc
  .record({
    hits: wholes(0, 32).map((hits) => Math.min(hits, two(32) - 1)),
    periodUs: wholes(1, 49).map((periodUs) => Math.min(periodUs, 315_360_000_000_000)),
    elapsedUs: wholes(0, 51),
    level: factors,
    isTime: fc.boolean(),
  })
  .map(({ hits, periodUs, elapsedUs, level, isTime }) =>
    isTime
      ? { a: level, b: periodUs, c: Math.max(1, hits) * two(20), cap: two(50) }
      : { a: elapsedUs, b: hits * two(20), c: periodUs, cap: Math.min(level, capMax(periodUs)) },
  );

describe("floorMulDiv() and ceilMulDiv()", () => {
  it.each([
    ["any numbers in range", cases],
    ["products beside a multiple of the divisor, results beside the cap", nearCases],
    ["what the law asks", lawCases],
  ])("equal arithmetic without limits: %s", (_name, arbitrary) => {
    fc.assert(fc.property(arbitrary, check), propertyRuns(5_000));
  });

  it("equal arithmetic without limits at every corner of their ranges", () => {
    const edges = [0, 1, 2, 3, two(26), two(27) + 1, two(52), two(53) - 1, two(53)];
    const corners = [...edges, two(20) * (two(32) - 1), 315_360_000_000_000, 94_906_265];
    const beside = corners.flatMap((edge) => [edge - 1, edge, edge + 1]);
    const inRange = [...new Set(beside)].filter((edge) => edge >= 0 && edge <= two(53));
    let count = 0;
    for (const a of inRange) {
      for (const b of inRange) {
        for (const c of inRange) {
          if (c === 0 || c > two(52)) continue;
          for (const cap of [0, 1, Math.floor(capMax(c) / 2), capMax(c) - 1, capMax(c)]) {
            check({ a, b, c, cap });
            count += 1;
          }
        }
      }
    }
    expect(count).toBeGreaterThan(50_000);
  });

  it("tell a product from its neighbours where doubles cannot", () => {
    // The products are 2^102 - 2^52 - 2^50 + 1 and 2^102 - 2^52; as doubles they end alike.
    expect(floorMulDiv(two(52) - 1, two(50) - 1, two(52), two(50))).toBe(two(50) - 2);
    expect(ceilMulDiv(two(52) - 1, two(50) - 1, two(52), two(50))).toBe(two(50) - 1);
    expect(floorMulDiv(two(52), two(50) - 1, two(52), two(50))).toBe(two(50) - 1);
    expect(ceilMulDiv(two(52), two(50) - 1, two(52), two(50))).toBe(two(50) - 1);
  });

  it.each([
    { a: 10_000, b: 3 * two(20), c: 1_000_000, cap: two(52), floor: 31_457, ceil: 31_458 },
    {
      a: 510,
      b: 1_094_992_850_576_356,
      c: 62,
      cap: 2 ** 53 - 4,
      floor: 2 ** 53 - 4,
      ceil: 2 ** 53 - 4,
    },
    { a: 0, b: two(53), c: 1, cap: 5, floor: 0, ceil: 0 },
    { a: two(53), b: two(53), c: 1, cap: two(49), floor: two(49), ceil: two(49) },
    { a: two(53), b: two(53), c: two(52), cap: 0, floor: 0, ceil: 0 },
    { a: 7, b: 1, c: 7, cap: 1, floor: 1, ceil: 1 },
    { a: 6, b: 1, c: 7, cap: 1, floor: 0, ceil: 1 },
  ])("of $a * $b / $c under $cap are $floor and $ceil", ({ a, b, c, cap, floor, ceil }) => {
    expect(floorMulDiv(a, b, c, cap)).toBe(floor);
    expect(ceilMulDiv(a, b, c, cap)).toBe(ceil);
  });
});
