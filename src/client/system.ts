import type { Cancel, Clock } from "../core/base/clock.js";
import { systemClock, timerMsMax } from "../host/clock.js";

/**
 * The process's own clock, for calls that somebody waits for: a process does not end between a
 * call's attempts, or before its deadline. No timer is left once no call waits.
 */
export const callClock: Clock = {
  ...systemClock,
  schedule: (delayMs, callback): Cancel => {
    const timer = setTimeout(callback, Math.min(delayMs, timerMsMax));
    return () => clearTimeout(timer);
  },
};
