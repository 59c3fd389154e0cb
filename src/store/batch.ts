import { assert } from "../core/base/errors.js";
import { type Charge, costHitsMax, delayUsMax, mayDelay } from "../core/limits/bucket.js";
import { isRepeatable, multiplicityMax } from "../core/limits/gcra.js";
import { drainTimeUsMax, hitsMax } from "../core/limits/limit.js";
import type { Windows } from "../core/limits/window.js";
import { batchChargesMax, requestChargesMax, type StoreRequest } from "./limit-store.js";

/**
 * Asserts that a batch meets the contract of `LimitStore.take`, before any of it is decided.
 * Numbers out of range would be rounded on their way into the store, and the two implementations of
 * the algorithm would diverge. Callers validate user input; an invalid batch here is a bug.
 */
export function assertBatch(batch: readonly StoreRequest[]): void {
  let chargeCount = 0;
  for (const { charges, multiplicity } of batch) {
    assert(charges.length > 0 && charges.length <= requestChargesMax, "request size in range");
    chargeCount += charges.length;
    for (const charge of charges) assertCharge(charge);
    if (multiplicity === 1) continue;
    assert(isWhole(multiplicity, multiplicityMax) && multiplicity > 0, "multiplicity in range");
    assert(isRepeatable(charges), "only requests that may be repeated are");
  }
  assert(chargeCount <= batchChargesMax, "batch size in range");
}

function assertCharge(charge: Charge): void {
  const { hits, periodUs, burst, cost, windows, delayUs } = charge;
  assert(isWhole(hits, hitsMax), "hits in range");
  assert(isWhole(burst, hitsMax), "burst in range");
  assert(isWhole(cost, costHitsMax), "cost in range");
  assert(isWhole(periodUs, drainTimeUsMax) && periodUs > 0, "period in range");
  if (windows !== undefined) assertWindows(windows);
  if (delayUs === undefined) return;
  assert(isWhole(delayUs, delayUsMax), "delay in range");
  assert(mayDelay(charge), "only charges that drain are delayed");
}

function assertWindows({ startUs, endUs, nextEndUs }: Windows): void {
  for (const timeUs of [startUs, endUs, nextEndUs]) {
    assert(isWhole(timeUs, Number.MAX_SAFE_INTEGER), "windows in range");
  }
  assert(startUs < endUs && endUs < nextEndUs, "windows in order");
}

function isWhole(value: number, max: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= max;
}
