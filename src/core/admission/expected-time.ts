import type { Priority } from "./priority.js";

/** Standard deviations by which a long queue may be slower than its mean. */
const slowerDeviations = 6;

/** The same by which it may be faster, for critical requests. */
const fasterDeviations = 0.8;

/** What a new request finds, and how fast that ends. */
interface RequestsBefore {
  /** Requests before it, in work and waiting, itself included. */
  readonly count: number;
  /** The time from one end to the next, in milliseconds. */
  readonly gapMs: number;
  /** How long a request takes at least. */
  readonly serviceMs: number;
  /** How long one takes without queueing; undefined where the law does not tell. */
  readonly baselineMs: number | undefined;
  /** Whether so much is in use that ends come at the pace of the service. */
  readonly isFull: boolean;
  /** This replica's part of what the fleet has in use, at most 1. */
  readonly partRatio: number;
}

/**
 * How long a new request must expect to take, its wait included: as long as all that are before it
 * take to end, at the pace at which they end, and no less than one takes. So it knows what waits at
 * the service, too, and needs no limit to be right.
 *
 * A queue of n takes sqrt(n) of these times more or less. Six times that are added for all but
 * critical requests, since the room that is left to lateness is theirs. For those it is 0.8 times
 * less: who is refused is lost for certain, and who is let in may well be served in time.
 *
 * Example: 30 in flight of which one ends each 5 ms: 150 ms, were it for 10 servers of 50 ms. A
 * critical request may expect 128 ms.
 */
export function expectedTimeMs(
  priority: Priority,
  { count, gapMs, serviceMs, baselineMs, isFull, partRatio }: RequestsBefore,
): number {
  const scatteredMs = (deviations: number, scatteredCount: number): number =>
    Math.max(serviceMs, (count + deviations * Math.sqrt(scatteredCount * partRatio)) * gapMs);
  if (priority === "critical") return scatteredMs(-fasterDeviations, count);
  // With much room ends come at the pace of arrivals, and tell nothing.
  if (baselineMs === undefined || !isFull) return scatteredMs(0, count);
  // What is served side by side does not wait for each other.
  return scatteredMs(slowerDeviations, Math.max(0, count - baselineMs / gapMs));
}
