/** Claim of one of several holders on a limit. */
export interface ShareClaim {
  /** What it could use, a whole number from 0. */
  readonly demand: number;
  /** What it gets first, whatever its demand. A whole number from 0. */
  readonly floor: number;
  /** How many times as much it gets as one of weight 1; above 0. */
  readonly weight: number;
}

/** Maximum number of claims on one limit. */
export const shareClaimsMax = 10_000;

/**
 * Divides a limit in whole numbers, by water-filling: each share rises in proportion to its weight
 * until its demand is met, or the limit is used up. Each claim gets its floor first. If the floors
 * exceed the limit, they are used as the demands.
 *
 * The shares add up to exactly `limit`, or to less if all demands are met. No share exceeds the
 * larger of its demand and its floor. An indivisible rest goes one by one to the first claims, so
 * the same claims in the same order give the same result everywhere.
 *
 * Example: 10 among demands 2, 8, 8 of equal weight, without floors: 2, 4, 4. 10 among 8, 8, 8: 4,
 * 3, 3. With the third's weight 2 and 12 to divide: 3, 3, 6.
 *
 * @param limit a whole number from 0, below 2^53
 * @param claims at most `shareClaimsMax`
 */
export function fairShares(limit: number, claims: readonly ShareClaim[]): readonly number[] {
  const columns = new ClaimColumns(claims.length);
  claims.forEach(({ demand, floor, weight }, i) => {
    columns.demands[i] = demand;
    columns.floors[i] = floor;
    columns.weights[i] = weight;
  });
  return fairColumns(limit, columns);
}

/** Claims in columns, without an object for each. Demands and floors are 0 at first. */
export class ClaimColumns {
  readonly demands: Float64Array;
  readonly floors: Float64Array;
  readonly weights: Float64Array;

  constructor(count: number) {
    this.demands = new Float64Array(count);
    this.floors = new Float64Array(count);
    this.weights = new Float64Array(count).fill(1);
  }
}

/** Same as `fairShares`, but overwrites the demands and floors. */
export function fairColumns(
  limit: number,
  { demands, floors, weights }: ClaimColumns,
): readonly number[] {
  let floorSum = 0;
  for (let i = 0; i < floors.length; i += 1) floorSum += at(floors, i);
  let askedCount = 0;
  for (let i = 0; i < floors.length; i += 1) {
    if (floorSum > limit) {
      demands[i] = at(floors, i);
      floors[i] = 0;
    } else {
      demands[i] = Math.max(at(floors, i), at(demands, i));
    }
    askedCount += at(demands, i);
  }
  if (askedCount <= limit) return plain(demands);
  return new Water({ least: floors, most: demands, weight: weights }).level(limit);
}

interface WaterColumns {
  readonly least: Float64Array;
  readonly most: Float64Array;
  readonly weight: Float64Array;
}

/** All shares while the water rises, in columns: 10,000 of them allocate no objects. */
class Water {
  readonly #least: Float64Array;
  readonly #most: Float64Array;
  readonly #weight: Float64Array;
  /** Shares at the lower of two levels, at the higher one, and at one between. */
  readonly #low: Float64Array;
  readonly #high: Float64Array;
  readonly #middle: Float64Array;
  /** The places of claims whose share differs between the two levels, in order. */
  readonly #open: Int32Array;
  #openCount = 0;

  constructor({ least, most, weight }: WaterColumns) {
    const { length: count } = least;
    this.#least = least;
    this.#most = most;
    this.#weight = weight;
    this.#low = new Float64Array(count);
    this.#high = new Float64Array(count);
    this.#middle = new Float64Array(count);
    this.#open = new Int32Array(count);
  }

  /**
   * Finds two levels with no number between, of which the lower one fits into the limit and the
   * higher one does not. Between them, each share rises by at most one, and enough shares do: the
   * first of them get the rest.
   *
   * It halves the distance until it vanishes, about 60 times for levels of similar size, or less
   * often if all remaining shares rise at the same level. Settled shares are skipped.
   */
  level(limit: number): readonly number[] {
    let settledSum = this.#begin();
    let low = 0;
    let high = this.#top();
    while (!this.#risesAtOnce()) {
      const middle = low + (high - low) / 2;
      if (middle <= low || middle >= high) break;
      const isLow = settledSum + this.#sumAt(middle) <= limit;
      if (isLow) low = middle;
      else high = middle;
      settledSum += this.#settle(isLow ? this.#low : this.#high);
    }
    let left = limit - settledSum;
    for (let i = 0; i < this.#openCount; i += 1) left -= at(this.#low, at(this.#open, i));
    const shares = plain(this.#low);
    for (let i = 0; i < this.#openCount && left > 0; i += 1, left -= 1) {
      const place = at(this.#open, i);
      shares[place] = at(this.#low, place) + 1;
    }
    return shares;
  }

  /** @returns the sum of the shares that never change */
  #begin(): number {
    this.#openCount = this.#least.length;
    for (let place = 0; place < this.#openCount; place += 1) {
      this.#open[place] = place;
      this.#low[place] = at(this.#least, place);
      this.#high[place] = at(this.#most, place);
      this.#middle[place] = at(this.#least, place);
    }
    return this.#settle(this.#low);
  }

  /** Returns a level at which all demands are met. */
  #top(): number {
    let top = 1;
    for (let place = 0; place < this.#most.length; place += 1) {
      top = Math.max(top, (at(this.#most, place) + 1) / at(this.#weight, place));
    }
    return top;
  }

  #sumAt(level: number): number {
    const [open, least, most, weight] = [this.#open, this.#least, this.#most, this.#weight];
    const middle = this.#middle;
    const count = this.#openCount;
    let sum = 0;
    for (let i = 0; i < count; i += 1) {
      const place = at(open, i);
      const risen = Math.floor(level * at(weight, place));
      const share = Math.min(at(most, place), Math.max(at(least, place), risen));
      middle[place] = share;
      sum += share;
    }
    return sum;
  }

  /** Replaces one of the two levels by the middle one. @returns the sum of newly settled shares */
  #settle(side: Float64Array): number {
    const [open, low, high, middle] = [this.#open, this.#low, this.#high, this.#middle];
    const count = this.#openCount;
    let settledSum = 0;
    let openCount = 0;
    for (let i = 0; i < count; i += 1) {
      const place = at(open, i);
      side[place] = at(middle, place);
      const share = at(low, place);
      if (share === at(high, place)) settledSum += share;
      else {
        open[openCount] = place;
        openCount += 1;
      }
    }
    this.#openCount = openCount;
    return settledSum;
  }

  /** Whether all remaining shares rise by one, and at the same level. */
  #risesAtOnce(): boolean {
    const first = at(this.#open, 0);
    const low = at(this.#low, first);
    const weight = at(this.#weight, first);
    for (let i = 0; i < this.#openCount; i += 1) {
      const place = at(this.#open, i);
      if (at(this.#low, place) !== low || at(this.#high, place) !== low + 1) return false;
      if (at(this.#weight, place) !== weight) return false;
    }
    return true;
  }
}

/** Copies a column, in a tenth of the time that `Array.from` takes. */
function plain(column: Float64Array): number[] {
  const values: number[] = new Array(column.length);
  for (let place = 0; place < column.length; place += 1) values[place] = at(column, place);
  return values;
}

/** Returns the value at a place that exists. */
function at(column: Float64Array | Int32Array, place: number): number {
  return column[place] ?? 0;
}
