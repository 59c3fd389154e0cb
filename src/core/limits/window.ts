/**
 * The windows in which a fixed-window limit counts, in microseconds since 1970 by the store's
 * clock: one that is running for whoever asks, and the one after it. Whoever asks gives both,
 * because only the store knows which of them holds when it decides.
 */
export interface Windows {
  readonly startUs: number;
  /** Where the running one ends and the next one starts. */
  readonly endUs: number;
  readonly nextEndUs: number;
}

/** From `startUs` on, up to but without `endUs`. */
export interface Window {
  readonly startUs: number;
  readonly endUs: number;
}

/**
 * The window that holds at a time.
 *
 * Whoever asked has a clock of its own. Where that was ahead, the store is still in the window
 * before, of which is known only when it ends: it is taken to have begun long ago, so nothing is
 * forgotten too early. Where it was behind by more than a window, the one after is taken to be as
 * long as the one before.
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
 * Windows of one length, counted from 1970: a week starts on a Thursday, a month has 30 days.
 *
 * Source: envoyproxy/ratelimit, `GenerateCacheKey` in src/limiter/cache_key.go.
 */
export function epochWindows(periodUs: number, nowUs: number): Windows {
  const startUs = nowUs - (nowUs % periodUs);
  return { startUs, endUs: startUs + periodUs, nextEndUs: startUs + 2 * periodUs };
}
