import type { Random } from "../../src/core/base/clock.js";
import type { DrawMs } from "../../src/simulate/engine/distributions.js";

/**
 * Heavy-tailed: Pareto of that shape, cut off at `cutRatio` times its least value, moved so that
 * `meanMs` is its mean after the cut. Shape 1.5 has no variance without the cut.
 *
 * It draws by `**`, whose last digit depends on the version of V8, as the tables of worlds were
 * made.
 */
export function heavyTailedMs(
  random: Random,
  { meanMs, shape = 1.5, cutRatio = 1_000 }: HeavyTail,
): DrawMs {
  const cutTail = cutRatio ** -shape;
  // Mean of a Pareto from 1 to cutRatio: the integral of x f(x), over what the cut leaves.
  const unitMean = (shape / (shape - 1)) * ((1 - cutRatio ** (1 - shape)) / (1 - cutTail));
  const leastMs = meanMs / unitMean;
  return () => leastMs * (1 - random.next() * (1 - cutTail)) ** (-1 / shape);
}

/** What `heavyTailedMs` takes. */
interface HeavyTail {
  readonly meanMs: number;
  /** More than 1; the smaller, the heavier. Default 1.5. */
  readonly shape?: number;
  /** The largest value over the least. Default 1,000. */
  readonly cutRatio?: number;
}
