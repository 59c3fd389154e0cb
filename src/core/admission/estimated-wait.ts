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

/** What may be admitted by the wait it must expect. */
export interface EstimatedWaitSettings {
  /** Refused from this wait on; undefined: no cap. */
  readonly max: WaitBound | undefined;
  /** Admitted with a falling probability; undefined: no curve. */
  readonly sigmoid: SigmoidSettings | undefined;
}

/** A service and its queue, as a new request finds them. */
export interface QueueState {
  /** Requests that wait here. */
  readonly waitingCount: number;
  /** Requests that hold a permit. */
  readonly inFlightCount: number;
  /** c: permits there are now, at least 1. */
  readonly limit: number;
  /** 1 / mu: how long a request holds a permit (`ServiceTime`); undefined: not known. */
  readonly serviceMs: number | undefined;
}

/**
 * Requests that have to be done with before a slot is free: who waits here, and in-flight requests
 * above the limit, as a limit that fell leaves them.
 */
export function queuedCount({ waitingCount, inFlightCount, limit }: QueueState): number {
  return waitingCount + Math.max(0, inFlightCount - limit);
}

/**
 * How long a new request must expect to wait, in milliseconds: `queue / (c x mu)`. Undefined where
 * there is a queue and no request has ended yet; without a queue it is 0. Infinity is possible,
 * where nothing ends any more.
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

/** A bound as a time; undefined where it counts in service times and none is known. */
export function waitBoundMs(bound: WaitBound, serviceMs: number | undefined): number | undefined {
  switch (bound.kind) {
    case "duration":
      return bound.ms;
    case "serviceTimes":
      return serviceMs === undefined ? undefined : bound.multiple * serviceMs;
  }
}

/**
 * Whether the expected wait has reached the cap. What is not known is no reason to refuse: the
 * queue's size bounds that.
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
 * The share of requests to refuse at the expected wait: one minus the admission probability
 * `1 / (1 + exp(slope x (wait - midpoint)))`. 0 where the wait or the midpoint is not known, and
 * where nobody waits, whatever the curve says of a wait of 0: an idle service would refuse requests
 * by chance, and a gate that stood closed by it would keep away everybody who could open it.
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
