import type { Cancel, Clock, Random } from "../core/base/clock.js";

/** The longest wait a timer knows; with more it would fire at once. */
const timerMsMax = 2 ** 31 - 1;

/** The process's own clock. Its timers do not keep the process alive. */
export const backgroundClock: Clock = {
  monotonicMs: () => performance.now(),
  epochUs: () => Date.now() * 1_000,
  schedule: (delayMs, callback): Cancel => {
    const timer = setTimeout(callback, Math.min(delayMs, timerMsMax));
    timer.unref();
    return () => clearTimeout(timer);
  },
  scheduleTurn: (callback): Cancel => {
    const immediate = setImmediate(callback);
    return () => clearImmediate(immediate);
  },
};

/**
 * The same, for calls that somebody waits for: a process does not end between a call's attempts, or
 * before its deadline. No timer is left once no call waits.
 */
export const callClock: Clock = {
  ...backgroundClock,
  schedule: (delayMs, callback): Cancel => {
    const timer = setTimeout(callback, Math.min(delayMs, timerMsMax));
    return () => clearTimeout(timer);
  },
};

/** Real randomness: no secret depends on it, so speed counts more than quality. */
export const callRandom: Random = {
  next: () => Math.random(),
  id: () => {
    const bytes = crypto.getRandomValues(new Uint8Array(8));
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  },
};
