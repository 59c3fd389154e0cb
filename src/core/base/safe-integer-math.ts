/**
 * Whole-number arithmetic that is exact although products pass 2^53. Scripts of stores hold the
 * same steps in Lua, whose numbers are the same IEEE 754 doubles, so both sides round alike.
 */

/**
 * Products split at this factor (2^27 + 1) fall apart into two exact halves.
 *
 * Source: T. J. Dekker, "A floating-point technique for extending the available precision", 1971.
 */
const splitFactor = 134_217_729;

/** The largest product that a double is sure to hold as it is. */
const plainProductMax = Number.MAX_SAFE_INTEGER;

/**
 * floor(a * b / c) exactly, or `cap` where the result would be at least `cap`.
 *
 * a and b are whole, 0 <= a, b <= 2^53; c is whole, 1 <= c <= 2^52; cap is whole, 0 <= cap <=
 * 2^53 - 4, and cap * c <= 2^102. a * b / c itself may be as large as it likes. Example:
 * floorMulDiv(10_000, 3 * 2^20, 1_000_000, 2^52) is 31_457 (31_457.28 rounded down).
 *
 * How: the estimate of the quotient q is off by at most a few; a * b and q * c are each written as
 * an exact sum of two doubles, so the remainder a * b - q * c is exact and says which q is right.
 *
 * Why the ranges suffice: two roundings move the estimate by at most q / 2^52, the floor by less
 * than 1, so the remainder lies within c + q * c / 2^52 <= 2^52 + 2^50 + 9 of zero. What rounding
 * took from the products is at most 2^49 each. Every sum of these is whole and below 2^53, and so
 * is every quotient on the way: it starts below cap + 4 (at a cap of 2^53 a step would be lost).
 *
 * Four numbers by position, against the habit: it runs several times a decision, and Lua's twin
 * reads the same.
 */
export function floorMulDiv(a: number, b: number, c: number, cap: number): number {
  const product = a * b;
  // Below 2^53 the product is exact, and no fraction short of a whole number rounds up to it.
  if (product <= plainProductMax) return Math.min(Math.floor(product / c), cap);
  let quotient = Math.floor(product / c);
  // The estimate is too large by less than 4, so beyond this line the result is at least the cap.
  if (quotient >= cap + 4) return cap;
  let remainder = exactDifference(a, b, quotient, c);
  while (remainder < 0) {
    quotient -= 1;
    remainder += c;
  }
  while (remainder >= c) {
    quotient += 1;
    remainder -= c;
  }
  return Math.min(quotient, cap);
}

/** ceil(a * b / c) exactly, within the ranges of `floorMulDiv`; `cap` where it would be larger. */
export function ceilMulDiv(a: number, b: number, c: number, cap: number): number {
  const product = a * b;
  if (product <= plainProductMax) {
    const floor = Math.floor(product / c);
    return Math.min(floor * c < product ? floor + 1 : floor, cap);
  }
  const quotient = floorMulDiv(a, b, c, cap);
  if (quotient >= cap) return cap;
  return exactDifference(a, b, quotient, c) > 0 ? quotient + 1 : quotient;
}

/** a * b - c * d, exact while the true difference lies within 2^53 less both rounding errors. */
export function exactDifference(a: number, b: number, c: number, d: number): number {
  const left = a * b;
  const right = c * d;
  return left - right + (productError(a, b, left) - productError(c, d, right));
}

/**
 * What rounding took away: a * b - product, exactly, where product is the double nearest to a * b.
 *
 * Source: J. R. Shewchuk, "Adaptive precision floating-point arithmetic", 1997, theorem 18.
 */
function productError(a: number, b: number, product: number): number {
  const aScaled = splitFactor * a;
  const aHigh = aScaled - (aScaled - a);
  const aLow = a - aHigh;
  const bScaled = splitFactor * b;
  const bHigh = bScaled - (bScaled - b);
  const bLow = b - bHigh;
  return aLow * bLow - (product - aHigh * bHigh - aLow * bHigh - aHigh * bLow);
}
