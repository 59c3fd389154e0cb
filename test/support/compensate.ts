import { type Bucket, levelAt } from "../../src/core/limits/bucket.js";
import { type Compensation, compensationUnits } from "../../src/core/limits/compensation.js";

/**
 * The bucket after a charge was undone; the same object when that changes nothing. A bucket from
 * the future is left for the next charge to bring back.
 */
export function compensate(compensation: Compensation, bucket: Bucket, nowUs: number): Bucket {
  const units = compensationUnits(compensation, nowUs);
  if (units === 0 || bucket.level === 0 || bucket.tUs > nowUs) return bucket;
  return { level: Math.max(0, levelAt(compensation, bucket, nowUs) - units), tUs: nowUs };
}
