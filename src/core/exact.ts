/**
 * Whole-number arithmetic that is exact although products pass 2^53. The Redis script holds the same
 * steps in Lua, whose numbers are the same IEEE 754 doubles, so both sides round alike.
 */

/** Products split at this factor (2^27 + 1) fall apart into two exact halves. Source: T. J. Dekker, 1971. */
const splitFactor = 134_217_729;

/** The largest result that these functions answer exactly. */
export const exactMax = Number.MAX_SAFE_INTEGER;

/**
 * floor(a * b / c) exactly, or `cap` where the result would be at least `cap`.
 *
 * a and b are whole, 0 <= a, b <= 2^53; c is whole, 1 <= c < 2^53; cap is whole, 0 <= cap <= 2^53, and
 * cap * c <= 2^102; a * b / c may be as large as it likes. Example: floorMulDiv(10_000, 3 * 2^20, 1_000_000, 2^53) is
 * 31_457 (31_457.28 rounded down).
 *
 * How: the estimate of the quotient q is off by at most a few; a * b and q * c are each written as
 * an exact sum of two doubles, so the remainder a * b - q * c is exact and says which q is right.
 */
export function floorMulDiv(a: number, b: number, c: number, cap: number): number {
  const product = a * b;
  if (product <= exactMax) {
    const quotient = Math.floor(product / c);
    // The division may have rounded up to a whole number; product and quotient * c are exact here.
    const exact = quotient * c > product ? quotient - 1 : quotient;
    return Math.min(exact, cap);
  }
  let quotient = Math.floor(product / c);
  // The estimate is off by one part in 2^51 at most, so beyond this line it is at least the cap.
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
  const quotient = floorMulDiv(a, b, c, cap);
  if (quotient >= cap) return cap;
  return exactDifference(a, b, quotient, c) > 0 ? quotient + 1 : quotient;
}

/** a * b - c * d, exact while the true difference lies within 2^53. */
function exactDifference(a: number, b: number, c: number, d: number): number {
  const left = a * b;
  const right = c * d;
  return left - right + (productError(a, b, left) - productError(c, d, right));
}

/** What rounding took away: a * b - product, exactly, where product is the double nearest to a * b. */
function productError(a: number, b: number, product: number): number {
  const aScaled = splitFactor * a;
  const aHigh = aScaled - (aScaled - a);
  const aLow = a - aHigh;
  const bScaled = splitFactor * b;
  const bHigh = bScaled - (bScaled - b);
  const bLow = b - bHigh;
  return aLow * bLow - (product - aHigh * bHigh - aLow * bHigh - aHigh * bLow);
}
