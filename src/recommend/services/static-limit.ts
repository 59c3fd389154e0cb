/** Overload that a static limit is designed for: three requests for a capacity of two. */
const overloadRatio = 1.5;

/** Minimum ratio of a limit to the workers, whose number is an estimate and may grow. */
const marginRatio = 1.1;

/** Part of its capacity that a service may lose because its workers run out of requests. */
const idleRatioMax = 0.005;

/**
 * Returns the smallest limit at which a service with this many workers serves 99.5 % of its
 * capacity under a load of 1.5 times the capacity. The requests beyond the workers form the queue
 * that keeps them busy between random arrivals: with fewer, workers are idle; more only wait. The
 * limit is at least a tenth above the workers, like that of `KneeLimit`.
 *
 * Example: 20 workers need a limit of 27, one worker needs 11.
 *
 * Source: the distribution of the number in an M/M/c/K system (Kleinrock, "Queueing Systems",
 * volume 1, section 3.8), as in the queue of `KneeLimit`.
 */
export function staticLimit(workers: number): number {
  const count = Math.max(1, Math.round(workers));
  /** Probabilities relative to the state with all workers busy and an empty queue. */
  let total = 1;
  let idle = 0;
  let below = 1;
  for (let busy = count; busy > 0 && below > Number.EPSILON; busy -= 1) {
    below *= busy / (overloadRatio * count);
    total += below;
    idle += below * (1 - (busy - 1) / count);
  }
  let waiting = 0;
  for (let above = 1; idle > idleRatioMax * total; waiting += 1) {
    above *= overloadRatio;
    total += above;
  }
  return Math.max(count + waiting, Math.ceil(marginRatio * count));
}
