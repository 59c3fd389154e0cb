import { microHzPerHz, type QuotaLimit, quotaReportMs } from "../../src/core/quota/quota.js";
import { ceilingMicroHzMax, limitHz } from "../../src/core/quota/quota-ceiling.js";

/** What the bounds of a pool depend on. */
export interface QuotaBoundsParts {
  /** The limits of one pool; the bound of the total is of the first one. */
  readonly limits: readonly QuotaLimit[];
  readonly ttlMs: number;
  /** The most holders at once, those that are gone within the last TTL with them. */
  readonly holdersMax: number;
  /** The most replicas at once, those that are gone within the last lease with them. */
  readonly replicasMax: number;
  /** How late messages between Envoys and replicas arrive at most. */
  readonly lateMs: number;
  /** Whether callers ask for the same limits. */
  readonly hasCalls: boolean;
}

/** In any interval of t seconds at most `hitsMax + hitsPerSecond * t` hits. */
export interface QuotaBound {
  readonly hitsPerSecond: number;
  readonly hitsMax: number;
}

/** What the bounds of a pool are. */
export interface QuotaBounds {
  /** Of what assignments let pass, whatever Envoys report, and whether they do. */
  readonly envelope: QuotaBound;
  /** Of all hits, those of callers too; but for what is never reported. */
  readonly total: QuotaBound;
}

/** Between a report and its charge: a tick, and the exchange of leases. */
const chargeMs = 2_000;

/**
 * What all Envoys together admit of a pool with rate r and burst b, at most, over any interval of
 * t seconds, and over any number of replicas. With H = ttl + 5 s, and what is ever handed out at
 * once C = r + b / (2 H):
 *
 * ```
 * envelope(t) = C * t + 2 M + 2 B + C * late
 * total(t)    = r * t + b + V,  or r * t + 1.5 b + V with callers
 *
 * M = min(5 holders + C / 4, max(b / 2, 30 C)) + 2 replicas     tokens that wait in buckets
 * B = max(b / 2, C / 2, min(5 C, 5 holders)) + 2 replicas       tokens for new buckets
 * V = C * (2 * (5 s + late) + 2 s) + 2 M + 2 B                  not charged, and charged ahead
 * ```
 *
 * The envelope holds whatever is reported: it is what assignments can admit (see `QuotaLedger`).
 * The total holds as far as use is reported: it is what `QuotaAccount` proves, with the level at
 * most at 3/4 of the burst as long as nobody else uses the limit (see `ceilingMicroHz`), and at
 * one and a half where callers fill it in a moment: quotas give way within H, and have half a burst
 * more until then. Use that nobody reports is at most what its assignment admits in five seconds,
 * or, of a replica that dies with its Envoys, in a lease.
 *
 * Example: 100 a second, burst 100, ttl 10 s, 20 Envoys, one replica, messages within 1 s: C is
 * 103.3; over a minute the envelope is 6,763 hits, and the total 8,006: the smaller one holds.
 */
export function quotaBounds(parts: QuotaBoundsParts): QuotaBounds {
  const { limits, ttlMs, holdersMax, replicasMax, lateMs, hasCalls } = parts;
  const most = ceilingMicroHzMax(limits, ttlMs) / microHzPerHz;
  const burst = limits.reduce(
    (least, limit) => Math.min(least, limit.burst),
    limits[0]?.burst ?? 0,
  );
  const rate = limits[0] === undefined ? 0 : limitHz(limits[0]);
  const tokens =
    Math.min(5 * holdersMax + most / 4, Math.max(burst / 2, 30 * most)) + 2 * replicasMax;
  const forEach = 5 * Math.min(most, holdersMax);
  const bank = Math.max(burst / 2, most / 2, forEach) + 2 * replicasMax;
  const given = 2 * tokens + 2 * bank;
  const unknownMs = 2 * (quotaReportMs + lateMs) + chargeMs;
  const unknownHits = (most * unknownMs) / 1_000 + given;
  const level = (hasCalls ? 1.5 : 1) * (limits[0]?.burst ?? 0);
  return {
    envelope: { hitsPerSecond: most, hitsMax: given + (most * lateMs) / 1_000 },
    total: { hitsPerSecond: rate, hitsMax: level + unknownHits },
  };
}

/** How often a pool's use is charged at least, and at most, in milliseconds. */
const tickMs = { min: 100, max: 1_000 } as const;

/**
 * How often a pool's use is charged: whenever half of the smallest burst may have been used. Where
 * that is less often, or a burst is less than a fifth of a second's rate, callers of the same limit
 * are admitted what quotas have used meanwhile.
 */
export function quotaTickMs(limits: readonly QuotaLimit[]): number {
  let least: number = tickMs.max;
  for (const limit of limits) {
    const halfMs = (500 * limit.burst) / Math.max(1e-9, limitHz(limit));
    least = Math.min(least, Math.max(tickMs.min, halfMs));
  }
  return Math.floor(least);
}
