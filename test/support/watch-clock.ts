import { pollMs } from "../../src/app/base/path-watcher.js";
import type { Clock } from "../../src/core/base/clock.js";
import { realClock } from "./real-clock.js";

/** How much shorter waits are. */
const hurryFactor = 10;

/**
 * The machine's time for what watches files: changes are over ten times sooner, and no look comes
 * by itself, so that what was seen was watched. `path-watcher.test.ts` is about the times.
 */
export const watchClock: Clock = {
  ...realClock,
  schedule: (delayMs, callback) =>
    delayMs >= pollMs ? () => {} : realClock.schedule(delayMs / hurryFactor, callback),
};
