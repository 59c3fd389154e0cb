/**
 * Raises a positive base to any power, with the same bits in every version of V8. For fractional
 * exponents, `**` differs in the last digit between versions, so a simulation with the same seed
 * would, too. The relative error grows with the logarithm of the result, and is below 1e-13 here.
 */
export function power(base: number, exponent: number): number {
  return Math.exp(exponent * Math.log(base));
}
