/**
 * The short lowering of a limit by which `MinRtt` tells a queue from a slow service: what one is,
 * and how its figures are judged.
 */

/** What a dip leaves of the permits in use. */
export const dipRatio = 0.4;

/**
 * How much more than in proportion to the permits a round trip must take in a dip to say that no
 * queue is left: in proportion it falls while there is one, and not at all without.
 */
const flatMargin = 1.25;

/** By how much more or less than that it must be to be no close thing. */
const closeRatio = 1.15;

/** By how much a measurement must differ to count as another baseline. */
const newsRatio = 1.25;

/** Latencies added up. */
export interface Pool {
  readonly sumMs: number;
  readonly count: number;
}

/** None yet. */
export const emptyPool: Pool = { sumMs: 0, count: 0 };

/** How deep a dip is, and what was seen there. */
export interface DipLevel {
  level: number;
  levelMs: number;
  pool: Pool;
  droppedCount: number;
  /** An earlier measurement at this level, where one is not enough. */
  lastRttMs: number | undefined;
}

/** A dip while it lasts; whose it is changes it. */
export interface Dip extends DipLevel {
  /** The law's limit when it began. */
  readonly limit: number;
  readonly limitMin: number;
  /** Begun because something looked like queueing, not by age. */
  readonly isSuspected: boolean;
  /** The baseline when it began. */
  readonly knownMs: number | undefined;
  readonly startMs: number;
  /** What the level above had; undefined where too many gave up to tell. */
  before: Before | undefined;
  /** The highest throughput that was seen on the way down, per millisecond. */
  perMs: number;
}

/** What a dip's latency is compared with. */
export interface Before {
  readonly rttMs: number;
  readonly inFlight: number;
}

/** What a dip found. */
export interface DipResult {
  /** Undefined where nobody was served in time at any level. */
  readonly rttMs: number | undefined;
  readonly capacity: number;
}

/** Where the next level begins. */
export interface NextLevel {
  readonly inFlight: number;
  readonly limitMin: number;
  readonly nowMs: number;
}

/** Begins a level below `inFlight` permits, no lower than the least limit. */
export function nextLevel({ inFlight, limitMin, nowMs }: NextLevel): DipLevel {
  return {
    level: Math.max(limitMin, Math.floor(inFlight * dipRatio)),
    levelMs: nowMs,
    pool: emptyPool,
    droppedCount: 0,
    lastRttMs: undefined,
  };
}

/**
 * Whether latency fell about as the permits did, or too many gave up above to tell. At its lowest a
 * dip takes what it finds: less is not to be had.
 */
export function hasQueue({ before, level, limitMin }: Dip, dipRttMs: number): boolean {
  if (level <= limitMin) return false;
  return before === undefined || flatnessOf(before, level, dipRttMs) < flatMargin;
}

/** Whether few more samples could turn the answer of `hasQueue`. */
export function isClose({ before, level, limitMin }: Dip, dipRttMs: number): boolean {
  if (before === undefined || level <= limitMin) return false;
  const flatness = flatnessOf(before, level, dipRttMs) / flatMargin;
  return flatness < closeRatio && flatness > 1 / closeRatio;
}

/** How latency fell next to the permits: 1 in proportion, more where it fell less. */
function flatnessOf(before: Before, level: number, dipRttMs: number): number {
  return dipRttMs / before.rttMs / (level / before.inFlight);
}

/**
 * A much higher baseline is measured twice: work that goes on for callers who have left is a queue
 * that no permit shows, and gets shorter from one measurement to the next.
 */
export function isDoubtful({ knownMs, lastRttMs }: Dip, dipRttMs: number): boolean {
  if (knownMs !== undefined && dipRttMs < newsRatio * knownMs) return false;
  return lastRttMs === undefined || dipRttMs * newsRatio < lastRttMs;
}

/** Whether it was worth while: another baseline, or a limit that is far too high. */
export function isNews({ knownMs, limit }: Dip, found: DipResult | undefined): boolean {
  if (found?.rttMs === undefined || knownMs === undefined) return true;
  if (found.capacity * 2 < limit) return true;
  return found.rttMs > knownMs * newsRatio || found.rttMs * newsRatio < knownMs;
}

/** Adds a window's latencies. */
export function pooled({ sumMs, count }: Pool, rttMs: number, sampleCount: number): Pool {
  return { sumMs: sumMs + rttMs * sampleCount, count: count + sampleCount };
}
