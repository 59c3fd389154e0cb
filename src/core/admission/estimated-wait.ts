/** A duration, or a multiple of the measured service time. */
export type WaitBound =
  | { readonly kind: "duration"; readonly ms: number }
  | { readonly kind: "serviceTimes"; readonly multiple: number };

/** A logistic curve over the estimated wait. */
export interface SigmoidSettings {
  /** The estimated wait at which one half is admitted. */
  readonly midpoint: WaitBound;
  /** Steepness per second of wait. */
  readonly slopePerSecond: number;
}

/** Admission by the estimated wait. */
export interface EstimatedWaitSettings {
  /** Estimated wait from which requests are refused; undefined: no cap. */
  readonly max: WaitBound | undefined;
  /** Curve by which the admission probability falls; undefined: no curve. */
  readonly sigmoid: SigmoidSettings | undefined;
}

/** A service and its queue, as a new request finds them. */
export interface QueueState {
  /** Requests that wait here. */
  readonly waitingCount: number;
  /** Requests that hold a permit. */
  readonly inFlightCount: number;
  /** c: current number of permits, at least 1. */
  readonly limit: number;
  /** 1 / mu: how long a request holds a permit (`ServiceTime`); undefined: not known. */
  readonly serviceMs: number | undefined;
}

/**
 * Returns how many requests must end before a slot is free: those that wait here, and those in
 * flight above the limit, which a limit that fell leaves behind.
 */
export function queuedCount({ waitingCount, inFlightCount, limit }: QueueState): number {
  return waitingCount + Math.max(0, inFlightCount - limit);
}

/**
 * Returns the expected wait of a new request, in milliseconds: `queue / (c x mu)`. 0 without a
 * queue. Undefined if there is a queue and no request has ended yet. Infinity if the service time
 * is infinite, because no request ends any more.
 *
 * Example: 40 waiting, 10 slots, 50 ms each: 40 / (10 x 20 a second) = 200 ms.
 *
 * Source: the virtual-queue text, "Admission control with hard thresholds".
 */
export function estimatedWaitMs(state: QueueState): number | undefined {
  const count = queuedCount(state);
  if (count === 0) return 0;
  return state.serviceMs === undefined ? undefined : (count * state.serviceMs) / state.limit;
}

/** Returns a bound as a time; undefined if it is in service times and none is known. */
export function waitBoundMs(bound: WaitBound, serviceMs: number | undefined): number | undefined {
  switch (bound.kind) {
    case "duration":
      return bound.ms;
    case "serviceTimes":
      return serviceMs === undefined ? undefined : bound.multiple * serviceMs;
  }
}

/**
 * Reports whether the expected wait has reached the cap. An unknown wait is no reason to refuse:
 * the queue's size bounds it.
 */
export function isOverWaitCap(
  { max }: Pick<EstimatedWaitSettings, "max">,
  state: QueueState,
): boolean {
  if (max === undefined) return false;
  const waitMs = estimatedWaitMs(state);
  const boundMs = waitBoundMs(max, state.serviceMs);
  return waitMs !== undefined && boundMs !== undefined && waitMs >= boundMs;
}

/**
 * Returns the share of requests to refuse at the expected wait: one minus the admission probability
 * `1 / (1 + exp(slope x (wait - midpoint)))`. 0 if the wait or the midpoint is not known. Also 0 if
 * no request is queued, whatever the curve gives for a wait of 0: an idle service would refuse
 * requests by chance, and a gate that this closed would keep away the requests that could open it.
 *
 * Example: midpoint 28 s, slope 0.23 a second: at a wait of 28 s it is 0.5, at 34 s 0.8, at 22 s
 * 0.2.
 *
 * Source: the virtual-queue text, "from hard thresholds to smooth control".
 */
export function sigmoidRejectRatio(sigmoid: SigmoidSettings, state: QueueState): number {
  if (queuedCount(state) === 0) return 0;
  const waitMs = estimatedWaitMs(state);
  const midpointMs = waitBoundMs(sigmoid.midpoint, state.serviceMs);
  if (waitMs === undefined || midpointMs === undefined) return 0;
  const excessSeconds = (waitMs - midpointMs) / 1_000;
  return 1 - 1 / (1 + Math.exp(sigmoid.slopePerSecond * excessSeconds));
}
