/** What one of several holders asks of a limit. */
export interface ShareClaim {
  /** What it could use, a whole number from 0. */
  readonly demand: number;
  /** What it gets before anybody gets more, whatever it asks for; a whole number from 0. */
  readonly floor: number;
  /** How many times as much it gets as one of weight 1; above 0. */
  readonly weight: number;
}

/** The most claims that one limit is divided among. */
export const shareClaimsMax = 10_000;

/**
 * Divides a limit in whole numbers, by water-filling: everybody's share rises at the pace of its
 * weight until it has what it asks for, or the limit is used up. First of all everybody has its
 * floor; where the limit does not even hold the floors, they are what is asked for.
 *
 * The shares add up to `limit` exactly, or to less where nobody asks for more. Nobody has more than
 * the larger of its demand and its floor. What does not divide goes one by one to the first, so
 * whoever computes it, with the claims in the same order, finds the same.
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

/** Claims in columns, without an object for each; nobody asks for anything at first. */
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

/** As `fairShares`; the demands and floors are other ones afterwards. */
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

/** The shares of all while the water rises, in columns: of 10,000 nothing is allocated. */
class Water {
  readonly #least: Float64Array;
  readonly #most: Float64Array;
  readonly #weight: Float64Array;
  /** Shares at the lower of two levels, at the higher one, and at one between. */
  readonly #low: Float64Array;
  readonly #high: Float64Array;
  readonly #middle: Float64Array;
  /** The places of those whose share is not the same at both levels, in their order. */
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
   * Looks for two levels with no number between, of which the lower one fits into the limit and the
   * higher one does not. So between them each share rises by one at most, and there are enough that
   * do: the first of them have what is left.
   *
   * It halves the distance until it vanishes, which is some 60 times for levels of a size; sooner
   * where all that still rise do so at the same level. Those whose share is settled are left alone.
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

  /** @returns what those have together whose share never changes */
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

  /** A level at which all have what they ask for. */
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

  /** The level between takes the place of one of the two. @returns what is settled by that */
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

  /** Whether all that still rise do so by one, and at one level. */
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

/** A tenth of the time that \`Array.from\` takes. */
function plain(column: Float64Array): number[] {
  const values: number[] = new Array(column.length);
  for (let place = 0; place < column.length; place += 1) values[place] = at(column, place);
  return values;
}

/** Of a place that is there. */
function at(column: Float64Array | Int32Array, place: number): number {
  return column[place] ?? 0;
}
