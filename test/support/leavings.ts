import assert from "node:assert/strict";
import fc from "fast-check";
import { type Bucket, type Charge, delayOf, levelAt } from "../../src/core/limits/bucket.js";
import { add, type Fraction, fraction, isAbove, most, subtract } from "./fraction.js";
import { unit, units } from "./gcra-model.js";

const second = 1_000_000;

/** A limit that holds requests, and what is asked of it. */
interface Leavings {
  readonly limit: Pick<Charge, "hits" | "periodUs" | "burst"> & { readonly delayUs: number };
  readonly arrivals: readonly { readonly gapUs: number; readonly cost: number }[];
}

/** Bursts and trickles, some of them above what a limit would ever let through. */
export const leavings: fc.Arbitrary<Leavings> = fc.record({
  limit: fc.record({
    hits: fc.integer({ min: 1, max: 50 }),
    periodUs: fc.constantFrom(second, 7 * second, 10_007),
    burst: fc.integer({ min: 1, max: 8 }),
    delayUs: fc.oneof(fc.constantFrom(0, 1, 200_000), fc.nat(3 * second)),
  }),
  arrivals: fc.array(
    fc.record({
      gapUs: fc.oneof(fc.constant(0), fc.nat(10), fc.nat(200_000), fc.nat(4 * second)),
      cost: fc.oneof({ weight: 3, arbitrary: fc.constant(1) }, fc.integer({ min: 1, max: 10 })),
    }),
    { minLength: 1, maxLength: 60 },
  ),
});

/** One request as it was decided. */
export interface Leaving {
  readonly charge: Charge;
  readonly nowUs: number;
  /** The bucket before it and, of a request that was granted, after it. */
  readonly before: Bucket;
  readonly after: Bucket;
  readonly isDenied: boolean;
}

/**
 * Throws unless the requests leave as GCRA without delays would let them in, none is held longer
 * than it may be, and none was refused that could have been held. In exact fractions: a second
 * bucket of its own is charged when requests leave. Times are whole microseconds, rounded up: one
 * that leaves later than it might shortens the gap to the next one by less than a microsecond.
 */
export function expectPaced(left: readonly Leaving[]): void {
  let level = fraction(0);
  let lastUs = 0;
  for (const one of left) {
    const { charge, nowUs, before, after, isDenied } = one;
    if (isDenied) {
      expectRefused(charge, levelAt(charge, before, nowUs));
      continue;
    }
    const heldUs = delayOf(charge, after, nowUs);
    assert(heldUs <= (charge.delayUs ?? 0), "held longer than it may be");
    const leavesUs = nowUs + heldUs;
    assert(leavesUs >= lastUs, "overtakes");
    const drained = fraction(BigInt(leavesUs - lastUs) * BigInt(charge.hits), charge.periodUs);
    level = add(most(fraction(0), subtract(level, drained)), fraction(charge.cost));
    const roundedUp = fraction(charge.hits, charge.periodUs);
    assert(!isAbove(level, add(fraction(charge.burst), roundedUp)), "leaves too early");
    lastUs = leavesUs;
  }
}

/** What was refused would have been above the burst even after the delay, but for rounding. */
function expectRefused({ cost, burst, hits, periodUs, delayUs = 0 }: Charge, level: number): void {
  const room: Fraction =
    cost > burst ? fraction(0) : fraction(BigInt(delayUs) * BigInt(hits), periodUs);
  const wanted = add(units(level), fraction(cost));
  assert(isAbove(add(wanted, unit), add(fraction(burst), room)), "refused, although it fits");
}
