/** The overload that a static limit is made for: three requests where there is room for two. */
const overloadRatio = 1.5;

/** How far a limit is above the workers at least: they are estimated, and may become more. */
const marginRatio = 1.1;

/** The share of its capacity that a service may lose because its workers run out of requests. */
const idleRatioMax = 0.005;

/**
 * The least limit at which a service of that many workers serves 99.5 % of its capacity while it is
 * asked for 1.5 times as much. The requests beyond the workers are the queue that keeps them busy
 * between random arrivals: fewer leave workers idle, more only wait. It is at least a tenth above
 * the workers, as the limit of `KneeLimit` is.
 *
 * Example: 20 workers need a limit of 27, one worker needs 11.
 *
 * Source: the distribution of the number in an M/M/c/K system (Kleinrock, "Queueing Systems",
 * volume 1, section 3.8), as in the queue of `KneeLimit`.
 */
export function staticLimit(workers: number): number {
  const count = Math.max(1, Math.round(workers));
  /** Probabilities relative to that of all workers busy and nobody waiting. */
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
