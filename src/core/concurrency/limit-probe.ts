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

/** Sum and number of latencies. */
interface LatencySum {
  readonly sumMs: number;
  readonly count: number;
}

/** A sum without latencies. */
export const emptyPool: LatencySum = { sumMs: 0, count: 0 };

/** The level of a probe, and what was measured there. */
interface ProbeLevel {
  level: number;
  /** The baseline that this level verifies. Undefined: the level is not one that verifies it. */
  expectedMs: number | undefined;
  levelMs: number;
  pool: LatencySum;
  droppedCount: number;
  /** An earlier measurement at this level, if one is not enough. */
  lastRttMs: number | undefined;
}

/** The state of a running probe. Its owner changes it. */
export interface LimitProbe extends ProbeLevel {
  /** The limit of the algorithm when the probe began. */
  readonly limit: number;
  readonly limitMin: number;
  /** Whether it began because of suspected queueing, not because the baseline was old. */
  readonly isSuspected: boolean;
  /** The baseline when the probe began. */
  readonly knownMs: number | undefined;
  readonly startMs: number;
  /** Measurement at the level above. Undefined if too many callers gave up there. */
  before: Before | undefined;
  /** Whether one level was not enough. */
  isDeep: boolean;
  /** Whether the level applies to critical requests, too. */
  holdsCritical: boolean;
  /** The highest throughput measured so far in the probe, in requests per millisecond. */
  perMs: number;
}

/** The measurement that the latency of a probe is compared with. */
export interface Before {
  readonly rttMs: number;
  readonly inFlight: number;
}

/** The result of a probe. */
export interface ProbeResult {
  /** Undefined if no request was served in time at any level. */
  readonly rttMs: number | undefined;
  readonly capacity: number;
}

/** What the next level depends on. */
interface NextLevel {
  readonly inFlight: number;
  readonly limitMin: number;
  /** Undefined if the baseline was never measured. */
  readonly known: KnownService | undefined;
  /** Whether a queue was measured at `inFlight`. If so, 0.6 replaces 0.4. */
  readonly hadQueue: boolean;
  readonly nowMs: number;
}

/** What is known about a service with a queue. */
export interface KnownService {
  readonly baselineMs: number;
  /** The throughput, in requests per millisecond. */
  readonly perMs: number;
}

/**
 * Returns the next level below `inFlight` permits, at least `limitMin`.
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
 * Reports whether there is still a queue: latency fell in proportion to the permits, or too many
 * callers gave up at the level above. At `limitMin` the measurement counts: no level is lower.
 */
export function hasQueue(probe: LimitProbe, probeRttMs: number): boolean {
  const { before, level, limitMin } = probe;
  if (level <= limitMin || verifies(probe, probeRttMs)) return false;
  if (isUnexpected(probe, probeRttMs)) return true;
  return before === undefined || flatnessOf(before, level, probeRttMs) < flatMargin;
}

/**
 * Reports whether a queue at the first level proves lost servers. The level is low enough for a
 * slower release to have no queue there, so the baseline still holds, and a deeper level would
 * only cost throughput.
 */
export function provesLoss({ isSuspected, isDeep, before, expectedMs }: LimitProbe): boolean {
  return isSuspected && !isDeep && before !== undefined && expectedMs === undefined;
}

/**
 * Reports whether a few more samples could change the answer of `hasQueue`. A baseline that is
 * almost verified is measured for longer at the cost of a fifth of the throughput, before a deeper
 * level costs most of it.
 */
export function isClose(probe: LimitProbe, probeRttMs: number): boolean {
  const { before, level, limitMin } = probe;
  if (level <= limitMin || verifies(probe, probeRttMs)) return false;
  if (verifies(probe, probeRttMs * closeRatio)) return true;
  if (before === undefined) return false;
  const flatness = flatnessOf(before, level, probeRttMs) / flatMargin;
  return flatness < closeRatio && flatness > 1 / closeRatio;
}

/** Returns the throughput that a probe has cost so far, as milliseconds without any. */
export function costMs({ isDeep, expectedMs }: LimitProbe, lastedMs: number): number {
  if (isDeep) return lastedMs;
  return lastedMs * (1 - (expectedMs === undefined ? limitProbeRatio : verifyRatio));
}

/**
 * Reports whether the measurement confirms the expected baseline. If that contained a queue, the
 * measurement would be a fifth shorter, and the probe goes deeper.
 */
function verifies({ expectedMs }: LimitProbe, probeRttMs: number): boolean {
  if (expectedMs === undefined) return false;
  return probeRttMs < newsRatio * expectedMs && probeRttMs >= verifiedRatio * expectedMs;
}

/**
 * Reports whether latency is much longer than the baseline to verify: the service is slower, or has
 * just lost servers. Measurements from before the probe are then no comparison, so this level is
 * compared with a deeper one.
 */
export function isUnexpected(
  { isDeep, level, expectedMs }: LimitProbe,
  probeRttMs: number,
): boolean {
  if (isDeep || level < comparedLevelMin || expectedMs === undefined) return false;
  return probeRttMs >= newsRatio * expectedMs;
}

/** Returns 1 if latency fell in proportion to the permits, and more if it fell less. */
function flatnessOf(before: Before, level: number, probeRttMs: number): number {
  return probeRttMs / before.rttMs / (level / before.inFlight);
}

/**
 * Reports whether a much higher baseline must be measured again. Work for callers who have left is
 * a queue that holds no permits, and it gets shorter from one measurement to the next.
 */
export function isDoubtful({ knownMs, lastRttMs }: LimitProbe, probeRttMs: number): boolean {
  if (knownMs !== undefined && probeRttMs < newsRatio * knownMs) return false;
  return lastRttMs === undefined || probeRttMs * newsRatio < lastRttMs;
}

/** Reports whether a probe found something new: another baseline, or a limit far too high. */
export function isNews({ knownMs, limit }: LimitProbe, found: ProbeResult | undefined): boolean {
  if (found?.rttMs === undefined || knownMs === undefined) return true;
  if (found.capacity * 2 < limit) return true;
  return found.rttMs > knownMs * newsRatio || found.rttMs * newsRatio < knownMs;
}

/** Reports whether the baseline is about the same as when the probe began. */
export function isConfirmed({ knownMs }: LimitProbe, found: ProbeResult | undefined): boolean {
  if (found?.rttMs === undefined || knownMs === undefined) return false;
  return found.rttMs < newsRatio * knownMs && found.rttMs >= verifiedRatio * knownMs;
}

/** Reports whether it is shorter by more than chance, so that it may still contain a queue. */
export function isShorter({ knownMs }: LimitProbe, found: ProbeResult | undefined): boolean {
  if (found?.rttMs === undefined || knownMs === undefined) return false;
  return found.rttMs < verifiedRatio * knownMs;
}

/** Adds the latencies of a window. */
export function pooled(
  { sumMs, count }: LatencySum,
  rttMs: number,
  sampleCount: number,
): LatencySum {
  return { sumMs: sumMs + rttMs * sampleCount, count: count + sampleCount };
}
