import { randomBytes, randomInt } from "node:crypto";
import type { Clock, Random } from "../../src/core/base/clock.js";

/** The machine's time, for tests that talk to real servers. */
export const realClock: Clock = {
  monotonicMs: () => performance.now(),
  epochUs: () => Date.now() * 1_000,
  schedule: (delayMs, callback) => {
    const timer = setTimeout(callback, Math.min(delayMs, 2_147_483_647));
    timer.unref();
    return () => clearTimeout(timer);
  },
  scheduleTurn: (callback) => {
    const immediate = setImmediate(callback);
    return () => clearImmediate(immediate);
  },
};

/** Real randomness, for identifiers that several test processes must not share. */
export const realRandom: Random = {
  next: () => randomInt(2 ** 47) / 2 ** 47,
  id: () => randomBytes(8).toString("hex"),
};
