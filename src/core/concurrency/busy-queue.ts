/** The share of their time in which workers may be idle for want of a queue. */
const idleRatio = 0.004;

/** Below such a part of the probability that all are busy, that of fewer ones is left out. */
const rareRatio = 0.001;

/** Below such a load no queue keeps all workers busy. */
const loadRatioMin = 1.03;

/** The longest queue above one request for each worker, in requests. */
const queueExtraMax = 18;

/** The shortest queue, in requests. */
export const queueMin = 1.5;

/**
 * The requests, 1.5 to workerCount + 18, that have to wait at a service so that its workers are
 * idle for 1 in 250 of their time.
 *
 * ```
 * queue = ln(idle * (1 - 1 / load) / 0.004) / ln(load)
 * ```
 *
 * With a load r that comes at random, a queue of n is empty while all work with the probability
 * (1 - 1 / r) / r^n. `idle` is the share of the workers that are idle because of that, over this
 * probability: a third for one worker at three times the capacity, a sixteenth for ten.
 *
 * Example: at three times the capacity two requests for ten workers, at 1.1 times twenty-eight.
 *
 * Source: M/M/c/K, the distribution of the number in the system.
 *
 * @param loadRatio requests that ask over those that end, from 0 on
 */
export function busyQueue(workerCount: number, loadRatio: number): number {
  const load = Math.max(loadRatioMin, loadRatio);
  const idle = (1 - 1 / load) * idleOfBusy(workerCount, load);
  const queue = Math.log(idle / idleRatio) / Math.log(load);
  return Math.max(queueMin, Math.min(queue, workerCount + queueExtraMax));
}

/**
 * The share of workers that are idle, over the probability that all are busy and nobody waits. With
 * n busy workers, requests end at n / workers of the full throughput, so that n - 1 busy ones are
 * less likely than n by n / (workers * load).
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
