/**
 * Limit probes: `MinRtt` lowers a limit for a short time to distinguish a queue from a slow
 * service. This file describes one probe, and evaluates its measurements.
 */

/** The first level of a probe, as a part of the permits in use. */
export const limitProbeRatio = 0.4;

/**
 * The next level, as a part of one at which a queue was measured. That level still had all of the
 * throughput, so a deeper one costs at most 40 % of it.
 */
const deeperRatio = 0.6;

/** The level that verifies a baseline, as a part of the permits that keep all servers busy. */
const verifyRatio = 0.8;

/** Below this level, a deeper level would take too long to measure. */
const comparedLevelMin = 5;

/** A measurement below this part of the expected baseline is a shorter baseline. */
const verifiedRatio = 0.9;

/** At this multiple of the permits that keep all servers busy, there is certainly a queue. */
const queueingRatio = 1.5;

/**
 * The loss of throughput, from one level to the next, that shows that no queue is left: the level
 * above had 1.15 times the throughput. If this is a mistake, the baseline contains a queue, which
 * costs no throughput, and the next probe corrects it. A level that is too deep costs throughput.
 */
const flatMargin = 1.15;

/** Within this factor of a threshold, a probe waits for more samples. */
const closeRatio = 1.15;

/** A measurement that differs by this factor is a new baseline. */
const newsRatio = 1.25;

/** Latencies added up. */
interface LatencySum {
  readonly sumMs: number;
  readonly count: number;
}

/** None yet. */
export const emptyPool: LatencySum = { sumMs: 0, count: 0 };

/** How deep a probe is, and what was seen there. */
interface ProbeLevel {
  level: number;
  /** The baseline that shows at this level if it holds; undefined: it is too high for that. */
  expectedMs: number | undefined;
  levelMs: number;
  pool: LatencySum;
  droppedCount: number;
  /** An earlier measurement at this level, where one is not enough. */
  lastRttMs: number | undefined;
}

/** A probe while it lasts; whose it is changes it. */
export interface LimitProbe extends ProbeLevel {
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
  /** Whether one level was not enough. */
  isDeep: boolean;
  /** Whether critical requests are held to it, too. */
  holdsCritical: boolean;
  /** The highest throughput that was seen on the way down, per millisecond. */
  perMs: number;
}

/** What a probe's latency is compared with. */
export interface Before {
  readonly rttMs: number;
  readonly inFlight: number;
}

/** What a probe found. */
export interface ProbeResult {
  /** Undefined where nobody was served in time at any level. */
  readonly rttMs: number | undefined;
  readonly capacity: number;
}

/** Where the next level begins. */
interface NextLevel {
  readonly inFlight: number;
  readonly limitMin: number;
  /** Undefined where the baseline was never measured. */
  readonly known: KnownService | undefined;
  /** Whether a queue was measured with as many in flight: then 0.6 takes the place of 0.4. */
  readonly hadQueue: boolean;
  readonly nowMs: number;
}

/** What is known of a service in whose queue requests wait. */
export interface KnownService {
  readonly baselineMs: number;
  /** The throughput, per millisecond. */
  readonly perMs: number;
}

/**
 * Begins a level below `inFlight` permits, no lower than the least limit.
 *
 * ```
 * busy  = baselineMs * perMs                                           by Little's law
 * level = 0.4 * inFlight                                               no baseline is known
 *         max(0.8 * busy, min(0.4 * inFlight, 1.5 * busy))             else; no less than
 *                                                                      0.16 * inFlight
 * ```
 *
 * At 0.8 of the permits that keep all servers busy, no queue is left if the baseline is right. The
 * probe then only verifies it, at the cost of a fifth of the throughput. A baseline that contains a
 * queue becomes a fifth shorter there. Above 1.5 times those permits, there is certainly a queue.
 * At very low levels, too few requests would come to distinguish a slow release from a queue.
 */
export function nextLevel({ inFlight, limitMin, known, nowMs, hadQueue }: NextLevel): ProbeLevel {
  const least = (hadQueue ? deeperRatio : limitProbeRatio) * inFlight;
  const busyCount = known === undefined ? 0 : known.baselineMs * known.perMs;
  const verifying = verifyRatio * Math.min(busyCount, inFlight);
  const most = Math.max(queueingRatio * busyCount, limitProbeRatio * least);
  const searching = known === undefined ? least : Math.min(least, most);
  return {
    level: Math.max(limitMin, Math.floor(Math.max(verifying, searching))),
    expectedMs: verifying >= searching ? known?.baselineMs : undefined,
    levelMs: nowMs,
    pool: emptyPool,
    droppedCount: 0,
    lastRttMs: undefined,
  };
}

/**
 * Whether latency fell about as the permits did, or too many gave up above to tell. At its lowest a
 * probe takes what it finds: less is not to be had.
 */
export function hasQueue(probe: LimitProbe, probeRttMs: number): boolean {
  const { before, level, limitMin } = probe;
  if (level <= limitMin || verifies(probe, probeRttMs)) return false;
  if (isUnexpected(probe, probeRttMs)) return true;
  return before === undefined || flatnessOf(before, level, probeRttMs) < flatMargin;
}

/**
 * Whether a queue at the first level is evidence of lost servers. The level is low enough for a
 * slower release to have no queue there, so the baseline still holds, and a deeper level would
 * only cost throughput.
 */
export function provesLoss({ isSuspected, isDeep, before, expectedMs }: LimitProbe): boolean {
  return isSuspected && !isDeep && before !== undefined && expectedMs === undefined;
}

/**
 * Whether few more samples could turn the answer of `hasQueue`: a baseline that is next to verified
 * is looked at for longer where it costs a fifth of the throughput, before a deeper level costs
 * most of it.
 */
export function isClose(probe: LimitProbe, probeRttMs: number): boolean {
  const { before, level, limitMin } = probe;
  if (level <= limitMin || verifies(probe, probeRttMs)) return false;
  if (verifies(probe, probeRttMs * closeRatio)) return true;
  if (before === undefined) return false;
  const flatness = flatnessOf(before, level, probeRttMs) / flatMargin;
  return flatness < closeRatio && flatness > 1 / closeRatio;
}

/** What a probe that has lasted so long has taken of the throughput, as time without any. */
export function costMs({ isDeep, expectedMs }: LimitProbe, lastedMs: number): number {
  if (isDeep) return lastedMs;
  return lastedMs * (1 - (expectedMs === undefined ? limitProbeRatio : verifyRatio));
}

/**
 * Whether what was measured is the baseline that was expected. A queue in that would have made it
 * shorter by a fifth now; then the probe looks further.
 */
function verifies({ expectedMs }: LimitProbe, probeRttMs: number): boolean {
  if (expectedMs === undefined) return false;
  return probeRttMs < newsRatio * expectedMs && probeRttMs >= verifiedRatio * expectedMs;
}

/**
 * Whether it takes much longer than where it was to be verified: the service is slower, or has lost
 * servers in this moment, and what was before the probe is nothing to compare with. So this level
 * is compared with a deeper one.
 */
export function isUnexpected(
  { isDeep, level, expectedMs }: LimitProbe,
  probeRttMs: number,
): boolean {
  if (isDeep || level < comparedLevelMin || expectedMs === undefined) return false;
  return probeRttMs >= newsRatio * expectedMs;
}

/** How latency fell next to the permits: 1 in proportion, more where it fell less. */
function flatnessOf(before: Before, level: number, probeRttMs: number): number {
  return probeRttMs / before.rttMs / (level / before.inFlight);
}

/**
 * A much higher baseline is measured twice: work that goes on for callers who have left is a queue
 * that no permit shows, and gets shorter from one measurement to the next.
 */
export function isDoubtful({ knownMs, lastRttMs }: LimitProbe, probeRttMs: number): boolean {
  if (knownMs !== undefined && probeRttMs < newsRatio * knownMs) return false;
  return lastRttMs === undefined || probeRttMs * newsRatio < lastRttMs;
}

/** Whether it was worth while: another baseline, or a limit that is far too high. */
export function isNews({ knownMs, limit }: LimitProbe, found: ProbeResult | undefined): boolean {
  if (found?.rttMs === undefined || knownMs === undefined) return true;
  if (found.capacity * 2 < limit) return true;
  return found.rttMs > knownMs * newsRatio || found.rttMs * newsRatio < knownMs;
}

/** Whether the baseline is about what it was when the probe began. */
export function isConfirmed({ knownMs }: LimitProbe, found: ProbeResult | undefined): boolean {
  if (found?.rttMs === undefined || knownMs === undefined) return false;
  return found.rttMs < newsRatio * knownMs && found.rttMs >= verifiedRatio * knownMs;
}

/** Whether it is shorter by more than chance, so that a part of a queue may be in it still. */
export function isShorter({ knownMs }: LimitProbe, found: ProbeResult | undefined): boolean {
  if (found?.rttMs === undefined || knownMs === undefined) return false;
  return found.rttMs < verifiedRatio * knownMs;
}

/** Adds a window's latencies. */
export function pooled(
  { sumMs, count }: LatencySum,
  rttMs: number,
  sampleCount: number,
): LatencySum {
  return { sumMs: sumMs + rttMs * sampleCount, count: count + sampleCount };
}
