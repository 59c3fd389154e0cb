/** Columns that a division reads and writes, by holder. */
export interface DivisionColumns {
  /** What each asks for. */
  readonly most: Float64Array;
  /** What each gets before anybody gets more. */
  readonly least: Float64Array;
  readonly weight: Float64Array;
  /** What each gets: written. */
  readonly target: Float64Array;
}

/** How often the distance is halved: below a millionth of a hit a second for any rate. */
const halvings = 60;

/**
 * Divides a rate among the first `count` places by water-filling, as `fairShares` does: everybody's
 * share rises at the pace of its weight, from its floor, until it has what it asks for. What nobody
 * asks for is spread by weight. All rounded down: together at most `rate`.
 *
 * It is `fairShares` in columns: a pool of 1,000 takes a tenth of its time and leaves no garbage.
 *
 * Example: 100 among demands 10, 50, 80 of equal weight: 10, 45, 45. Among 10, 20, 40: 20, 30, 50.
 */
export function divideRate(rate: number, columns: DivisionColumns, count: number): void {
  const { most, least, weight, target } = columns;
  let leastSum = 0;
  let mostSum = 0;
  let weightSum = 0;
  let top = 0;
  for (let i = 0; i < count; i += 1) {
    const wanted = Math.max(most[i] ?? 0, least[i] ?? 0);
    leastSum += least[i] ?? 0;
    mostSum += wanted;
    weightSum += weight[i] ?? 0;
    top = Math.max(top, wanted / (weight[i] ?? 1));
  }
  if (mostSum <= rate) {
    const lent = (rate - mostSum) / Math.max(weightSum, 1e-9);
    for (let i = 0; i < count; i += 1) {
      const wanted = Math.max(most[i] ?? 0, least[i] ?? 0);
      target[i] = Math.floor(wanted + lent * (weight[i] ?? 0));
    }
    return;
  }
  // Not even the floors fit: they are what is asked for.
  const isTight = leastSum > rate;
  let low = 0;
  let high = top;
  for (let step = 0; step < halvings && high - low > 0.5 * high * Number.EPSILON; step += 1) {
    const middle = (low + high) / 2;
    if (sumAt(middle, isTight, { columns, count }) <= rate) low = middle;
    else high = middle;
  }
  for (let i = 0; i < count; i += 1) {
    const floor = least[i] ?? 0;
    const end = isTight ? floor : Math.max(most[i] ?? 0, floor);
    target[i] = Math.floor(shareAt(low * (weight[i] ?? 0), isTight ? 0 : floor, end));
  }
}

function sumAt(
  level: number,
  isTight: boolean,
  { columns, count }: { readonly columns: DivisionColumns; readonly count: number },
): number {
  const { most, least, weight } = columns;
  let sum = 0;
  for (let i = 0; i < count; i += 1) {
    const floor = least[i] ?? 0;
    const end = isTight ? floor : Math.max(most[i] ?? 0, floor);
    sum += shareAt(level * (weight[i] ?? 0), isTight ? 0 : floor, end);
  }
  return sum;
}

function shareAt(water: number, floor: number, end: number): number {
  return Math.min(end, Math.max(floor, water));
}
