import { assert } from "../core/errors.js";
import { type Charge, costHitsMax } from "../core/gcra.js";
import { drainTimeUsMax, hitsMax } from "../core/limit.js";
import { batchChargesMax, requestChargesMax } from "./limit-store.js";

/**
 * Throws when a batch breaks the contract of `LimitStore.take`, before any of it is decided:
 * numbers out of range would be rounded on their way into the store, and the two executions of the
 * law would part. Callers check what users say; what arrives here wrong is a bug.
 */
export function assertBatch(batch: readonly (readonly Charge[])[]): void {
  let chargeCount = 0;
  for (const request of batch) {
    assert(request.length > 0 && request.length <= requestChargesMax, "request size in range");
    chargeCount += request.length;
    for (const charge of request) assertCharge(charge);
  }
  assert(chargeCount <= batchChargesMax, "batch size in range");
}

function assertCharge({ hits, periodUs, burst, cost }: Charge): void {
  assert(isWhole(hits, hitsMax), "hits in range");
  assert(isWhole(burst, hitsMax), "burst in range");
  assert(isWhole(cost, costHitsMax), "cost in range");
  assert(isWhole(periodUs, drainTimeUsMax) && periodUs > 0, "period in range");
}

function isWhole(value: number, max: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= max;
}
