import type { Cancel, Clock, Random } from "../core/base/clock.js";

/** Maximum delay of a timer. A timer with a longer delay would fire at once. */
export const timerMsMax = 2 ** 31 - 1;

/** The process's clock. Monotonic time comes from the system, so clock steps do not affect it. */
export const systemClock: Clock = {
  monotonicMs: () => performance.now(),
  // Date has milliseconds; the origin with performance.now has more, but drifts from clock steps.
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

const hexOfByte = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/**
 * System randomness. No decision depends on `next`, so speed matters more than quality. Ids come
 * from the Web Crypto API, because the client library also runs where `node:crypto` does not exist.
 */
export const systemRandom: Random = {
  next: () => Math.random(),
  id: () => {
    let id = "";
    for (const byte of crypto.getRandomValues(new Uint8Array(8))) id += hexOfByte[byte];
    return id;
  },
};
