/** How waits between tries grow. */
export interface Backoff {
  /** The wait after the first failure, in milliseconds. */
  readonly initialMs: number;
  /** The longest wait, in milliseconds; it wins over `initialMs`. */
  readonly maxMs: number;
  /** What each further failure multiplies the wait by, at least 1. */
  readonly growthFactor: number;
  /** Whether waits are spread, so that a fleet that failed together does not return together. */
  readonly isJittered: boolean;
}

/** The shortest wait, whatever is configured: without one, a server that is down costs a core. */
export const backoffMsMin = 50;

/**
 * The wait before the next try, in milliseconds: `initial x growth^(failures - 1)`, at most the
 * maximum; with jitter a random part of it, at least half.
 *
 * Example: initial 1 s, growth 2, maximum 60 s, third failure: 4 s; with jitter 2 s to 4 s.
 *
 * @param failureCount failures in a row, at least 1
 * @param draw uniform in [0, 1)
 */
export function backoffMs(backoff: Backoff, failureCount: number, draw: number): number {
  const { initialMs, maxMs, growthFactor, isJittered } = backoff;
  const wholeMs = Math.min(maxMs, initialMs * growthFactor ** (failureCount - 1));
  return Math.max(backoffMsMin, isJittered ? wholeMs * (0.5 + 0.5 * draw) : wholeMs);
}
