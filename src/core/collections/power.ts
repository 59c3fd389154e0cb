/**
 * A positive base to any power, with the same bits in every version of V8: for fractional exponents
 * `**` differs in the last digit between versions, and a simulation with the same seed would, too.
 * The error grows with the size of the logarithm of the result; it is below 1e-13 of it here.
 */
export function power(base: number, exponent: number): number {
  return Math.exp(exponent * Math.log(base));
}
