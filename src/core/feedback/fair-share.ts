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
  const floorSum = claims.reduce((sum, claim) => sum + claim.floor, 0);
  const bounds = floorSum > limit ? claims.map(floorBounds) : claims.map(demandBounds);
  const askedCount = bounds.reduce((sum, { most }) => sum + most, 0);
  if (askedCount <= limit) return bounds.map(({ most }) => most);
  const { low, high } = enclosingLevels(limit, bounds);
  const shares = bounds.map((bound) => shareAt(low, bound));
  let leftCount = limit - sumAt(low, bounds);
  return shares.map((share, i) => {
    const bound = bounds[i];
    if (leftCount === 0 || bound === undefined || shareAt(high, bound) === share) return share;
    leftCount -= 1;
    return share + 1;
  });
}

interface Bounds {
  readonly least: number;
  readonly most: number;
  readonly weight: number;
}

function demandBounds({ demand, floor, weight }: ShareClaim): Bounds {
  return { least: floor, most: Math.max(floor, demand), weight };
}

function floorBounds({ floor, weight }: ShareClaim): Bounds {
  return { least: 0, most: floor, weight };
}

/** The share of one while the water stands at a level. */
function shareAt(level: number, { least, most, weight }: Bounds): number {
  return Math.min(most, Math.max(least, Math.floor(level * weight)));
}

function sumAt(level: number, bounds: readonly Bounds[]): number {
  return bounds.reduce((sum, bound) => sum + shareAt(level, bound), 0);
}

/**
 * Two levels with no number between, of which the lower one fits into the limit and the higher one
 * does not. So between them each share rises by one at most, and there are enough that do.
 *
 * It halves the distance until it vanishes: some 1,100 times at most, as doubles have it, and about
 * 60 times for levels of a size.
 */
function enclosingLevels(
  limit: number,
  bounds: readonly Bounds[],
): { readonly low: number; readonly high: number } {
  let low = 0;
  let high = bounds.reduce((most, bound) => Math.max(most, (bound.most + 1) / bound.weight), 1);
  for (;;) {
    const middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) return { low, high };
    if (sumAt(middle, bounds) <= limit) low = middle;
    else high = middle;
  }
}
