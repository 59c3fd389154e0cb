/**
 * The windows of a fixed-window limit, in microseconds since 1970 by the store's clock: the current
 * one and the next one. The caller passes both, because only the store knows which one applies when
 * it decides.
 */
export interface Windows {
  readonly startUs: number;
  /** The end of the current window and the start of the next one. */
  readonly endUs: number;
  readonly nextEndUs: number;
}

/** From `startUs`, inclusive, to `endUs`, exclusive. */
export interface Window {
  readonly startUs: number;
  readonly endUs: number;
}

/**
 * Returns the window that contains a point in time.
 *
 * The caller's clock may differ from the store's. If it is ahead, the store is still in the
 * previous window, of which only the end is known; it is assumed to have started long ago, so that
 * no usage is dropped too early. If it is behind by more than a window, the window after the next
 * is assumed to be as long as the next.
 */
export function windowAt({ startUs, endUs, nextEndUs }: Windows, nowUs: number): Window {
  if (nowUs < startUs) return { startUs: 0, endUs: startUs };
  if (nowUs < endUs) return { startUs, endUs };
  if (nowUs < nextEndUs) return { startUs: endUs, endUs: nextEndUs };
  const lengthUs = nextEndUs - endUs;
  const passedCount = Math.floor((nowUs - nextEndUs) / lengthUs);
  const laterUs = nextEndUs + passedCount * lengthUs;
  return { startUs: laterUs, endUs: laterUs + lengthUs };
}

/**
 * Windows of a fixed length, counted from 1970: a week starts on a Thursday, a month has 30 days.
 *
 * Source: envoyproxy/ratelimit, `GenerateCacheKey` in src/limiter/cache_key.go.
 */
export function epochWindows(periodUs: number, nowUs: number): Windows {
  const startUs = nowUs - (nowUs % periodUs);
  return { startUs, endUs: startUs + periodUs, nextEndUs: startUs + 2 * periodUs };
}
