/** Settings for the wait between retries. */
export interface Backoff {
  /** The wait after the first failure, in milliseconds. */
  readonly initialMs: number;
  /** Maximum wait, in milliseconds. Takes precedence over `initialMs`. */
  readonly maxMs: number;
  /** The factor by which each further failure multiplies the wait, at least 1. */
  readonly growthFactor: number;
  /** Whether waits are random, so that a fleet that failed together does not return together. */
  readonly isJittered: boolean;
}

/** Minimum wait, regardless of settings. Without it, a server that is down would cost a core. */
export const backoffMsMin = 50;

/**
 * Returns the wait before the next try, in milliseconds: `initial x growth^(failures - 1)`, at most
 * the maximum. With jitter, a random part of that, at least half.
 *
 * Example: initial 1 s, growth 2, maximum 60 s, third failure: 4 s, or 2 s to 4 s with jitter.
 *
 * @param failureCount consecutive failures, at least 1
 * @param draw uniform in [0, 1)
 */
export function backoffMs(backoff: Backoff, failureCount: number, draw: number): number {
  const { initialMs, maxMs, growthFactor, isJittered } = backoff;
  const wholeMs = Math.min(maxMs, initialMs * growthFactor ** (failureCount - 1));
  return Math.max(backoffMsMin, isJittered ? wholeMs * (0.5 + 0.5 * draw) : wholeMs);
}
