/** A measured value and its weight: one over the variance of its error. */
export interface WeightedPoint {
  readonly x: number;
  readonly y: number;
  readonly weight: number;
}

/** A function of x that a fit scales with a coefficient. */
export type Basis = (x: number) => number;

/** The best coefficients, and the remaining weighted sum of squared errors. */
export interface LinearFit {
  readonly coefficients: readonly number[];
  readonly squaredError: number;
}

/**
 * Fits `y = a f(x) + b g(x) + ...` with coefficients of zero or more, by weighted least squares.
 * With at most three functions, it tries every set of nonzero coefficients.
 *
 * Example: the points (1, 3) and (2, 5) with `1` and `x` give the coefficients 1 and 2.
 *
 * Source: Lawson and Hanson, "Solving Least Squares Problems", chapter 23 (the same optimum).
 */
export function fitNonNegative(
  points: readonly WeightedPoint[],
  bases: readonly Basis[],
): LinearFit {
  let best: LinearFit = {
    coefficients: bases.map(() => 0),
    squaredError: points.reduce((sum, { y, weight }) => sum + weight * y * y, 0),
  };
  const rows = points.map(({ x }) => bases.map((basis) => basis(x)));
  for (let set = 1; set < 2 ** bases.length; set += 1) {
    const used = bases.flatMap((_, i) => ((set >> i) % 2 === 1 ? [i] : []));
    const solved = solve(points, rows, used);
    if (solved === undefined || solved.some((value) => value < 0)) continue;
    const coefficients = bases.map((_, i) => solved[used.indexOf(i)] ?? 0);
    const squaredError = points.reduce((sum, { y, weight }, i) => {
      const fitted = coefficients.reduce((total, a, j) => total + a * (rows[i]?.[j] ?? 0), 0);
      return sum + weight * (y - fitted) ** 2;
    }, 0);
    if (squaredError < best.squaredError) best = { coefficients, squaredError };
  }
  return best;
}

/** Solves the normal equations by elimination. Undefined if functions are linearly dependent. */
function solve(
  points: readonly WeightedPoint[],
  rows: readonly (readonly number[])[],
  used: readonly number[],
): readonly number[] | undefined {
  const size = used.length;
  const matrix = used.map((a) => {
    const sums = used.map((b) => sumOf(points, (i) => at(rows, i, a) * at(rows, i, b)));
    return [...sums, sumOf(points, (i) => at(rows, i, a) * (points[i]?.y ?? 0))];
  });
  for (let pivot = 0; pivot < size; pivot += 1) {
    const row = matrix[pivot] ?? [];
    const scale = row[pivot] ?? 0;
    // A pivot of a positive matrix is zero only if two functions are linearly dependent.
    if (!(scale > 1e-12)) return undefined;
    for (const [i, other] of matrix.entries()) {
      if (i === pivot) continue;
      const factor = (other[pivot] ?? 0) / scale;
      for (let j = pivot; j <= size; j += 1) other[j] = (other[j] ?? 0) - factor * (row[j] ?? 0);
    }
  }
  return matrix.map((row, i) => (row[size] ?? 0) / (row[i] ?? 1));
}

function sumOf(points: readonly WeightedPoint[], value: (i: number) => number): number {
  return points.reduce((sum, { weight }, i) => sum + weight * value(i), 0);
}

function at(rows: readonly (readonly number[])[], i: number, j: number): number {
  return rows[i]?.[j] ?? 0;
}
