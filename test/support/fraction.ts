/** An exact number: numerator / denominator, the latter positive. */
export interface Fraction {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

/** The fraction of two whole numbers; the denominator is positive. */
export function fraction(numerator: bigint | number, denominator: bigint | number = 1): Fraction {
  return { numerator: BigInt(numerator), denominator: BigInt(denominator) };
}

/** Adds, in lowest terms, so that long histories stay small. */
export function add(left: Fraction, right: Fraction): Fraction {
  const numerator = left.numerator * right.denominator + right.numerator * left.denominator;
  const denominator = left.denominator * right.denominator;
  const divisor = gcd(numerator < 0n ? -numerator : numerator, denominator);
  return { numerator: numerator / divisor, denominator: denominator / divisor };
}

/** Subtracts. */
export function subtract(left: Fraction, right: Fraction): Fraction {
  return add(left, { numerator: -right.numerator, denominator: right.denominator });
}

/** Whether left > right. */
export function isAbove(left: Fraction, right: Fraction): boolean {
  return left.numerator * right.denominator > right.numerator * left.denominator;
}

/** The smaller of two. */
export function least(left: Fraction, right: Fraction): Fraction {
  return isAbove(left, right) ? right : left;
}

/** The larger of two. */
export function most(left: Fraction, right: Fraction): Fraction {
  return isAbove(left, right) ? left : right;
}

function gcd(left: bigint, right: bigint): bigint {
  let [a, b] = [left, right];
  while (b !== 0n) [a, b] = [b, a % b];
  return a === 0n ? 1n : a;
}
