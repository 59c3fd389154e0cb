/** Part of their time in which workers may be idle because the queue is empty. */
const idleRatio = 0.004;

/** States that are less likely than this, relative to all workers being busy, are ignored. */
const rareRatio = 0.001;

/** Minimum load: below it, no queue keeps all workers busy. */
const loadRatioMin = 1.03;

/** Maximum queue beyond one request for each worker, in requests. */
const queueExtraMax = 18;

/** Minimum queue, in requests. */
export const queueMin = 1.5;

/**
 * Returns how many requests, 1.5 to workerCount + 18, have to wait at a service so that its workers
 * are idle for 1/250 of their time.
 *
 * ```
 * queue = ln(idle * (1 - 1 / load) / 0.004) / ln(load)
 * ```
 *
 * With random arrivals at load r, the probability that all work and a queue of n is empty is
 * (1 - 1 / r) / r^n. `idle` is the part of the workers that are idle because of that, divided by
 * this probability: a third for one worker at three times the capacity, a sixteenth for ten.
 *
 * Example: for ten workers, 2 requests at three times the capacity, and 28 at 1.1 times.
 *
 * Source: M/M/c/K, the distribution of the number in the system.
 *
 * @param loadRatio requests that arrive divided by those that end, at least 0
 */
export function busyQueue(workerCount: number, loadRatio: number): number {
  const load = Math.max(loadRatioMin, loadRatio);
  const idle = (1 - 1 / load) * idleOfBusy(workerCount, load);
  const queue = Math.log(idle / idleRatio) / Math.log(load);
  return Math.max(queueMin, Math.min(queue, workerCount + queueExtraMax));
}

/**
 * Returns the part of workers that are idle, divided by the probability that all are busy and no
 * request waits. With n busy workers, requests end at n / workers of the full throughput, so n - 1
 * busy workers are less likely than n by the factor n / (workers * load).
 */
function idleOfBusy(workerCount: number, load: number): number {
  let ratio = 1;
  let idleCount = 0;
  for (let i = 1; i <= workerCount && ratio > rareRatio; i += 1) {
    ratio *= (workerCount - i + 1) / (workerCount * load);
    idleCount += ratio * i;
  }
  return idleCount / workerCount;
}
