import { ceilMulDiv } from "../base/safe-integer-math.js";
import { type Drain, unitsPerHit } from "./bucket.js";
import type { LimitKey } from "./limit.js";
import { windowAt } from "./window.js";

/** A charge of ours that is to be undone, because another store denied the rest of its request. */
export interface Compensation extends Drain {
  readonly key: LimitKey;
  /** Hits that were charged: 0 to 2^32 - 1, since they fitted a bucket. */
  readonly cost: number;
  /** When they were charged, by the clock of the store that holds the bucket. */
  readonly chargedUs: number;
}

/**
 * The part of a charge that is given back, in units: all of it but what the bucket can have drained
 * since, rounded against us. A clock that went back says nothing about that, so then it is 0; so it
 * is at a rate of 0, where no bucket holds anything.
 *
 * Why not more, although other hits may have been the ones that drained: let D be how much fuller
 * the bucket is than it were without all charges that will be undone, and E what all of them may
 * still give back. A charge adds as much to D as to E. Draining takes from D at most what drains,
 * and from E at least that, as long as there is any. Giving back takes the same from both. So
 * E <= D always: no bucket ever gets emptier than if those charges had never been, and what the
 * others were admitted keeps the promise of `core/limits/gcra`. A refund by a caller may break
 * E <= D, and then by at most what it gave back: the promise is net of those.
 *
 * Example: 5 hits charged, 10 hits a second, 0.2 s later: 3 hits.
 */
export function compensationUnits(compensation: Compensation, nowUs: number): number {
  const { hits, periodUs, windows, cost, chargedUs } = compensation;
  const charged = cost * unitsPerHit;
  if (nowUs < chargedUs || hits === 0) return 0;
  // Nothing drains within a window, and nothing is left of one that has ended.
  if (windows !== undefined) return chargedUs < windowAt(windows, nowUs).startUs ? 0 : charged;
  return charged - ceilMulDiv(nowUs - chargedUs, hits * unitsPerHit, periodUs, charged);
}
