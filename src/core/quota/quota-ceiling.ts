import { microHzPerHz, type QuotaLimit, quotaReportMs } from "./quota.js";

/** The part of a burst that quotas use; the rest is for calls, and for what is told late. */
const burstRatio = 0.5;

/** What of a limit counts for what may be handed out. */
export interface CeilingParts {
  readonly ttlMs: number;
  /** The part of the rate that is kept for callers: 0 to 0.9. */
  readonly callsShare: number;
}

/** Time in which Envoys follow for sure: an assignment's time and a report. */
function horizonMs(ttlMs: number): number {
  return ttlMs + quotaReportMs;
}

/** The rate of a limit, in hits a second. */
export function limitHz({ hits, periodUs }: Pick<QuotaLimit, "hits" | "periodUs">): number {
  return (hits * 1e6) / periodUs;
}

/**
 * What may be handed out of a limit over all replicas, in micro-hits a second, rounded down:
 *
 * ```
 * rate + (burst / 2 - level') / H - rate * callsShare * c, at least 0
 * level' = level - 1, at least 0: hits are whole
 * c = (level' - burst / 2) / (burst / 2), within 0 and 1; H = ttl + 5 s
 * ```
 *
 * So at full use the level comes to rest at half of the burst, with exactly the rate handed out.
 * All that is handed out beyond the rate until then comes from half of the burst; what is taken
 * back is taken back for sure within H, and so the level overshoots by a quarter of the burst.
 * Where callers use the limit too they push the level up, and quotas give way: by the pull of the
 * level, which is weak where the burst is small, and by `callsShare` of the rate.
 *
 * Example: 100 a second, burst 300, ttl 10 s: 110 while empty, 100 at level 151, 90 at level 301;
 * with a callsShare of 0.1 it is 80 there.
 *
 * @param levelHits what is used: in the store, and what is still to be charged
 */
export function ceilingMicroHz(
  limit: QuotaLimit,
  { ttlMs, callsShare }: CeilingParts,
  levelHits: number,
): number {
  const { burst } = limit;
  const rate = limitHz(limit);
  const half = burst * burstRatio;
  const level = Math.max(0, levelHits - 1);
  const pull = (half - level) / (horizonMs(ttlMs) / 1_000);
  const crowd = Math.min(1, Math.max(0, level - half) / Math.max(half, 1e-9));
  const hz = rate * (1 - callsShare * crowd) + pull;
  return Math.max(0, Math.floor(hz * microHzPerHz));
}

/** The most that is ever handed out of all limits together: while the tightest one is empty. */
export function ceilingMicroHzMax(limits: readonly QuotaLimit[], ttlMs: number): number {
  let least = Number.MAX_SAFE_INTEGER;
  for (const limit of limits) {
    least = Math.min(least, ceilingMicroHz(limit, { ttlMs, callsShare: 0 }, 0));
  }
  return least;
}
