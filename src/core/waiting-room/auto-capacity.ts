/** Load of a service in the whole fleet, as one replica knows it. */
export interface ServiceLoad {
  /** Requests that the service can take at a time, as its concurrency limit has learned. */
  readonly limit: number;
  /** Requests that hold a permit. */
  readonly inFlightCount: number;
}

/** Measurements of `activeUsersMax: auto`. */
export interface AutoCapacity {
  /** Maximum sessions at a time. Undefined: not measured yet. */
  readonly autoActiveMax: number | undefined;
  /** Decayed sums over seconds: requests in flight, and sessions in use. */
  readonly inFlightSum: number;
  readonly activeSum: number;
}

/** Maximum sessions at a time while the service's limit is not known. */
export const defaultAutoActiveMax = 100;

/**
 * Computes the sessions that a service can carry. A session has `u` requests in flight on average:
 * requests in flight divided by sessions in use, both measured over about a minute. (By Little's
 * law, that is its requests, times how long each holds a permit, divided by the length of a
 * session.) A learned limit of L requests then carries
 *
 *     target = 0.9 L / u
 *
 * It begins with L, as if each visitor always had one request in flight. It then grows by at most
 * 1 % per second, and only while the sessions that it allows are used, since a few visitors do not
 * represent many. It falls by at most 3 % per second.
 *
 * Example: L 200, 600 sessions with 60 requests in flight: u 0.1, and the target 1,800 sessions.
 */
export function nextAutoCapacity(
  before: AutoCapacity,
  load: ServiceLoad | undefined,
  {
    activeCount,
    elapsedSeconds,
  }: { readonly activeCount: number; readonly elapsedSeconds: number },
): AutoCapacity {
  if (load === undefined || !(load.limit > 0)) return before;
  const kept = Math.exp(-elapsedSeconds / memorySeconds);
  const inFlightSum = before.inFlightSum * kept + load.inFlightCount * elapsedSeconds;
  const activeSum = before.activeSum * kept + activeCount * elapsedSeconds;
  const now = before.autoActiveMax ?? load.limit;
  const target = inFlightSum > 0 ? (headroomRatio * load.limit * activeSum) / inFlightSum : now;
  const isUsed = activeCount >= usedRatio * now;
  const rise = isUsed ? growthPerSecond ** elapsedSeconds : 1;
  const most = Math.max(now * rise, 1);
  const least = now * fallPerSecond ** elapsedSeconds;
  const autoActiveMax = Math.min(Math.max(target, least, 1), most, sessionsMax);
  return { autoActiveMax, inFlightSum, activeSum };
}

const memorySeconds = 60;

const headroomRatio = 0.9;

const usedRatio = 0.9;

const growthPerSecond = 1.01;

const fallPerSecond = 0.97;

/** Capacity of a room's session table. */
const sessionsMax = 1_000_000;
