import {
  type Bucket,
  bucketTimeToFullUs,
  type Charge,
  remainingHits,
  retryAfterUs,
} from "./bucket.js";
import { drainTimeUsMax, hitsMax, type LimitKey } from "./limit.js";

/**
 * The numbers of one `CL.THROTTLE`: `count` tokens come in each period, an unused key holds
 * `maxBurst + 1` of them, and the command takes `quantity` or nothing.
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
  /** 0 to `hitsMax`; 0 peeks. */
  readonly quantity: number;
}

/** The largest period, in seconds: ten years. */
export const throttlePeriodSecondsMax = drainTimeUsMax / 1_000_000;

/** Whether a full key would take longer than ten years to drain, which no store keeps. */
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
 * Returns the five integers of the reply: 0 allowed or 1 limited, the limit, what remains of it,
 * seconds until the same command fits or -1, and seconds until the key is unused. Seconds are
 * rounded up, so that nobody comes too early.
 *
 * Example: `CL.THROTTLE k 15 30 60` on an unused key gives 0, 16, 15, -1, 2.
 *
 * @param charge as it was decided: at a store's failure with other numbers than those asked
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
