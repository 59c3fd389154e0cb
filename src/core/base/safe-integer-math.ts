/**
 * Integer arithmetic that is exact even if products exceed 2^53. Scripts of stores contain the same
 * steps in Lua, whose numbers are the same IEEE 754 doubles, so both sides round alike.
 */

/**
 * Splits a double into two halves whose products are exact: 2^27 + 1.
 *
 * Source: T. J. Dekker, "A floating-point technique for extending the available precision", 1971.
 */
const splitFactor = 134_217_729;

/** The largest product that a double certainly represents exactly. */
const plainProductMax = Number.MAX_SAFE_INTEGER;

/**
 * Returns floor(a * b / c) exactly, or `cap` if the result would be at least `cap`.
 *
 * All are integers: 0 <= a, b <= 2^53; 1 <= c <= 2^52; 0 <= cap <= 2^53 - 4, and cap * c <= 2^102.
 * a * b / c itself has no upper bound. Example:
 * floorMulDiv(10_000, 3 * 2^20, 1_000_000, 2^52) is 31_457 (31_457.28 rounded down).
 *
 * How: the estimate of the quotient q is off by at most a few. a * b and q * c are each written as
 * an exact sum of two doubles, so the remainder a * b - q * c is exact and determines the right q.
 *
 * Why the ranges suffice: two roundings move the estimate by at most q / 2^52, the floor by less
 * than 1, so the remainder lies within c + q * c / 2^52 <= 2^52 + 2^50 + 9 of zero. The rounding
 * errors of the products are at most 2^49 each. Every sum of these is an integer below 2^53, as is
 * every intermediate quotient: it starts below cap + 4 (at a cap of 2^53, a step would be lost).
 *
 * Takes four positional numbers, unlike other functions: it runs several times per decision, and
 * its Lua counterpart reads the same.
 */
export function floorMulDiv(a: number, b: number, c: number, cap: number): number {
  const product = a * b;
  // Below 2^53, the product is exact, and no quotient below an integer rounds up to it.
  if (product <= plainProductMax) return Math.min(Math.floor(product / c), cap);
  let quotient = Math.floor(product / c);
  // The estimate is too large by less than 4, so from cap + 4 on, the result is at least the cap.
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

/** Returns ceil(a * b / c) exactly, at most `cap`. Same ranges as `floorMulDiv`. */
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

/** Returns a * b - c * d. Exact if the difference is within 2^53 minus both rounding errors. */
export function exactDifference(a: number, b: number, c: number, d: number): number {
  const left = a * b;
  const right = c * d;
  return left - right + (productError(a, b, left) - productError(c, d, right));
}

/**
 * Returns the rounding error a * b - product exactly. `product` is the double nearest to a * b.
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
