import { microHzPerHz, type QuotaLimit, quotaReportMs } from "./quota.js";

/** The fraction of a burst that quotas use. The rest is for callers and late reports. */
const burstRatio = 0.5;

/** The parts of a limit that determine how much may be assigned. */
export interface CeilingParts {
  readonly ttlMs: number;
  /** The fraction of the rate that is reserved for callers: 0 to 0.9. */
  readonly callsShare: number;
}

/** Time within which Envoys certainly follow a change: the ttl of an assignment and one report. */
function horizonMs(ttlMs: number): number {
  return ttlMs + quotaReportMs;
}

/** The rate of a limit, in hits per second. */
export function limitHz({ hits, periodUs }: Pick<QuotaLimit, "hits" | "periodUs">): number {
  return (hits * 1e6) / periodUs;
}

/**
 * Returns what may be assigned of a limit over all replicas, in micro-hits per second, rounded
 * down:
 *
 * ```
 * rate + (burst / 2 - level') / H - rate * callsShare * c, at least 0
 * level' = level - 1, at least 0: hits are whole
 * c = (level' - burst / 2) / (burst / 2), clamped to 0 to 1; H = ttl + 5 s
 * ```
 *
 * At full use, the level therefore settles at half of the burst, and exactly the rate is assigned.
 * Whatever is assigned beyond the rate until then comes out of half of the burst. Envoys certainly
 * follow a reduction within H, so the level overshoots by a quarter of the burst. If callers use
 * the limit too, they raise the level, and quotas yield: in proportion to the level, which has
 * little effect if the burst is small, and by `callsShare` of the rate.
 *
 * Example: 100 per second, burst 300, ttl 10 s gives 110 while empty, 100 at level 151, 90 at level
 * 301; with a callsShare of 0.1 it gives 80 at level 301.
 *
 * @param levelHits used hits: those in the store, and those that are still to be charged
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

/** The most that is ever assigned over all limits: the value while the tightest limit is empty. */
export function ceilingMicroHzMax(limits: readonly QuotaLimit[], ttlMs: number): number {
  let least = Number.MAX_SAFE_INTEGER;
  for (const limit of limits) {
    least = Math.min(least, ceilingMicroHz(limit, { ttlMs, callsShare: 0 }, 0));
  }
  return least;
}
