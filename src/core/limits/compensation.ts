import { ceilMulDiv } from "../base/safe-integer-math.js";
import { type Drain, unitsPerHit } from "./bucket.js";
import type { LimitKey } from "./limit.js";
import { windowAt } from "./window.js";

/** A charge to undo, because another store denied the rest of its request. */
export interface Compensation extends Drain {
  readonly key: LimitKey;
  /** Hits that were charged: 0 to 2^32 - 1, because they fitted a bucket. */
  readonly cost: number;
  /** When they were charged, by the clock of the store that holds the bucket. */
  readonly chargedUs: number;
}

/**
 * Returns the part of a charge to refund, in units: all of it except what the bucket may have
 * drained since, rounded down. Returns 0 if the clock was set back, because the elapsed time is
 * then unknown, and at a rate of 0, where no bucket holds anything.
 *
 * Why not more, although other hits may have drained instead: let D be how much fuller the bucket
 * is than without all charges that will be undone, and E what all of them may still refund. A
 * charge adds the same amount to D and to E. Draining reduces D by at most the drained amount, and
 * E by at least that amount while E is positive. A refund reduces both equally. So E <= D always
 * holds: no bucket becomes emptier than if those charges had never been made, and the guarantee of
 * `core/limits/gcra` holds for the other requests. A refund by a caller can break E <= D by at most
 * the refunded amount; the guarantee is net of refunds.
 *
 * Example: 5 hits charged, 10 hits per second, 0.2 s later: 3 hits.
 */
export function compensationUnits(compensation: Compensation, nowUs: number): number {
  const { hits, periodUs, windows, cost, chargedUs } = compensation;
  const charged = cost * unitsPerHit;
  if (nowUs < chargedUs || hits === 0) return 0;
  // A window does not drain before its end, and nothing is left of one that has ended.
  if (windows !== undefined) return chargedUs < windowAt(windows, nowUs).startUs ? 0 : charged;
  return charged - ceilMulDiv(nowUs - chargedUs, hits * unitsPerHit, periodUs, charged);
}
