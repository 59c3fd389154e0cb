import type { Cancel, Clock } from "../core/base/clock.js";
import { systemClock, timerMsMax } from "../host/clock.js";

/**
 * The process's own clock, for calls that a caller waits for: the process does not end between a
 * call's attempts, or before its deadline. No timer remains when no call waits.
 */
export const callClock: Clock = {
  ...systemClock,
  schedule: (delayMs, callback): Cancel => {
    const timer = setTimeout(callback, Math.min(delayMs, timerMsMax));
    return () => clearTimeout(timer);
  },
};
