import type { Deadline } from "./deadline.js";
import type { Priority } from "./priority.js";

/** Standard deviations by which a queue may be slower than its mean. */
const slowerDeviations = 6;

/** Standard deviations by which it may be faster, for critical requests. */
const fasterDeviations = 0.8;

/** The requests before a new one, and how fast they end. */
interface RequestsBefore {
  /** Requests before it, in flight and waiting, itself included. */
  readonly count: number;
  /** Time between two ends of requests, in milliseconds. */
  readonly gapMs: number;
  /** Minimum time of a request, in milliseconds. */
  readonly serviceMs: number;
  /** Time of a request without queueing; undefined if the algorithm does not know it. */
  readonly baselineMs: number | undefined;
  /** Whether so many permits are in use that requests end at the throughput of the service. */
  readonly isFull: boolean;
  /** This replica's part of what the fleet has in use, at most 1. */
  readonly partRatio: number;
}

/**
 * Returns the expected time of a new request, including its wait: the time in which all requests
 * before it end, at the present throughput, and at least the service time. This includes the queue
 * at the service, and does not depend on a correct limit.
 *
 * The time of a queue of n has a standard deviation of about sqrt(n) gaps. For all but critical
 * requests, six of them are added at a full service with a known baseline, which leaves the longest
 * waits to critical requests. For critical requests, 0.8 of them are subtracted: a refused request
 * is lost for certain, and an admitted one may still be served in time.
 *
 * Example: 30 in flight, and one ends each 5 ms: 150 ms, such as with 10 workers of 50 ms. A
 * critical request may expect 128 ms.
 */
export function expectedTimeMs(
  priority: Priority,
  { count, gapMs, serviceMs, baselineMs, isFull, partRatio }: RequestsBefore,
): number {
  const scatteredMs = (deviations: number, scatteredCount: number): number =>
    Math.max(serviceMs, (count + deviations * Math.sqrt(scatteredCount * partRatio)) * gapMs);
  if (priority === "critical") return scatteredMs(-fasterDeviations, count);
  // With free permits, requests end at the rate of arrivals, which is not the throughput.
  if (baselineMs === undefined || !isFull) return scatteredMs(0, count);
  // Requests that are served in parallel do not wait for each other.
  return scatteredMs(slowerDeviations, Math.max(0, count - baselineMs / gapMs));
}

/** A source of expected times of requests. */
interface ExpectsTime {
  inUseCount(): number;
  /** Undefined until a request has ended. */
  expectedMs(priority: Priority, nowMs: number): number | undefined;
}

/** A new request. */
interface ExpectingRequest {
  readonly priority: Priority;
  /** Undefined if the request states none. */
  readonly deadline: Deadline | undefined;
}

/**
 * Reports whether a request is expected to take longer than its caller waits. One at a time is
 * admitted nevertheless: otherwise, nothing would show that the service got faster.
 */
export function isExpectedLate(
  pool: ExpectsTime,
  { priority, deadline }: ExpectingRequest,
  nowMs: number,
): boolean {
  if (deadline === undefined || pool.inUseCount() === 0) return false;
  const expectedMs = pool.expectedMs(priority, nowMs);
  return expectedMs !== undefined && expectedMs > deadline.remainingMs;
}
