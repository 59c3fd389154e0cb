import {
  type Bucket,
  bucketTimeToFullUs,
  type Charge,
  remainingHits,
  retryAfterUs,
} from "./bucket.js";
import { drainTimeUsMax, hitsMax, type LimitKey } from "./limit.js";

/**
 * The numbers of one `CL.THROTTLE`: each period adds `count` tokens, an unused key has
 * `maxBurst + 1` of them, and the command takes either `quantity` of them or none.
 *
 * Source: redis-cell, `CL.THROTTLE key max_burst count period [quantity]`.
 */
export interface ThrottleNumbers {
  /** 0 to `hitsMax - 1`. */
  readonly maxBurst: number;
  /** 1 to `hitsMax`. */
  readonly count: number;
  /** 1 to ten years. */
  readonly periodSeconds: number;
  /** 0 to `hitsMax`. 0 peeks. */
  readonly quantity: number;
}

/** Maximum period, in seconds: ten years. */
export const throttlePeriodSecondsMax = drainTimeUsMax / 1_000_000;

/** Whether a full key would take longer than ten years to drain. No store keeps it that long. */
export function drainsTooSlowly({ maxBurst, count, periodSeconds }: ThrottleNumbers): boolean {
  return ((maxBurst + 1) / count) * periodSeconds > throttlePeriodSecondsMax;
}

/** Returns the charge of a `CL.THROTTLE`. The numbers must not drain too slowly. */
export function throttleCharge(
  key: LimitKey,
  { maxBurst, count, periodSeconds, quantity }: ThrottleNumbers,
  role: Charge["role"],
): Charge {
  return {
    key,
    hits: count,
    periodUs: periodSeconds * 1_000_000,
    burst: Math.min(hitsMax, maxBurst + 1),
    cost: quantity,
    role,
    isRefund: false,
    peekExhausted: false,
  };
}

/**
 * Returns the five integers of the reply: 0 if allowed or 1 if limited, the limit, what remains of
 * it, the seconds until the same command fits or -1, and the seconds until the key is unused.
 * Seconds are rounded up, so that no caller returns too early.
 *
 * Example: `CL.THROTTLE k 15 30 60` on an unused key gives 0, 16, 15, -1, 2.
 *
 * @param charge as it was decided. If the store failed, its numbers may differ from the command's
 */
export function throttleReply(
  { maxBurst }: ThrottleNumbers,
  charge: Charge,
  decided: { readonly isDenied: boolean; readonly bucket: Bucket; readonly nowUs: number },
): readonly [number, number, number, number, number] {
  const { isDenied, bucket, nowUs } = decided;
  const limit = maxBurst + 1;
  const remaining = Math.min(limit, remainingHits(charge, bucket, nowUs));
  const retryUs = isDenied ? retryAfterUs(charge, bucket, nowUs) : undefined;
  // Something always drains: the count is at least 1.
  const resetUs = bucketTimeToFullUs(charge, bucket, nowUs) ?? 0;
  return [
    isDenied ? 1 : 0,
    limit,
    remaining,
    retryUs === undefined ? -1 : Math.ceil(retryUs / 1_000_000),
    Math.ceil(resetUs / 1_000_000),
  ];
}
