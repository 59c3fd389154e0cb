import { type LineShuffle, liveBlockSize, type RoomStatus } from "./room-line.js";
import { shuffled, unshuffled } from "./shuffle.js";

/**
 * Returns the place of a number. Smaller places are called first. The place is the number, permuted
 * by each run that contains it, in order: visitors who were shuffled and still wait when the next
 * event opens are shuffled again, with those who have joined since.
 */
export function placeOf(number: number, shuffles: readonly LineShuffle[]): number {
  let place = number;
  for (const run of shuffles) {
    const index = place - run.from;
    if (index >= 0 && index < run.count) place = run.from + shuffled(index, run);
  }
  return place;
}

/** Returns the number that has a place: the inverse of `placeOf`. */
export function numberAtPlace(place: number, shuffles: readonly LineShuffle[]): number {
  let number = place;
  for (const run of shuffles.toReversed()) {
    const index = number - run.from;
    if (index >= 0 && index < run.count) number = run.from + unshuffled(index, run);
  }
  return number;
}

/**
 * Returns runs in which a place may still be called. A run whose places were all called is still
 * needed while a later one overlaps it, since numbers of the former have places in the latter.
 */
export function openShuffles(
  shuffles: readonly LineShuffle[],
  calledPlace: number,
): readonly LineShuffle[] {
  let openFrom = calledPlace;
  const open: LineShuffle[] = [];
  for (const run of shuffles.toReversed()) {
    if (run.from + run.count <= openFrom) continue;
    openFrom = Math.min(openFrom, run.from);
    open.unshift(run);
  }
  return open;
}

/**
 * Returns the number of present visitors with smaller places, at the last count. It is 0 for places
 * that were called. Visitors ahead who have joined since then count as present.
 *
 * The result is exact for the first blocks, as of the last second. Further behind, the blocks ahead
 * of the place's own are exact. Of its own block, it takes a part in proportion to the position in
 * it, as if visitors had left evenly: the error is less than `liveBlockSize`, of at least three
 * times as many. For one place, the result never rises while counts only fall.
 */
export function aheadOf(
  place: number,
  status: Pick<RoomStatus, "calledPlace" | "nextNumber" | "liveByBlock" | "liveAtFront">,
): number {
  if (place <= status.calledPlace) return 0;
  const joinedSince = place - status.nextNumber;
  if (joinedSince > 0) return aheadOf(status.nextNumber, status) + joinedSince;
  const frontPlace = status.calledPlace - (status.calledPlace % liveBlockSize);
  const block = Math.floor((place - frontPlace) / liveBlockSize);
  const { liveByBlock, liveAtFront } = status;
  let count = 0;
  for (let i = 0; i < Math.min(block, liveByBlock.length); i += 1) count += liveByBlock[i] ?? 0;
  const blockPlace = frontPlace + block * liveBlockSize;
  const inBlock = place - blockPlace;
  if (place - frontPlace < 8 * liveAtFront.length) {
    return count + onesIn(liveAtFront, blockPlace - frontPlace, inBlock);
  }
  const size = Math.min(liveBlockSize, Math.max(status.nextNumber - blockPlace, 1));
  return count + Math.floor(((liveByBlock[block] ?? 0) * inBlock) / size);
}

/** Counts ones among `count` bits from a bit on. The first bit is the lowest of the first byte. */
function onesIn(bits: Uint8Array, from: number, count: number): number {
  let ones = 0;
  for (let i = from; i < from + count; i += 1) ones += ((bits[i >> 3] ?? 0) >> (i & 7)) & 1;
  return ones;
}
