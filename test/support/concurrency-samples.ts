import type {
  ConcurrencySample,
  WindowedSample,
} from "../../src/core/concurrency/concurrency-limit.js";

/** A sample that was served at once with one permit in use, but for what is given. */
export function sampleOf(given: Partial<ConcurrencySample> = {}): ConcurrencySample {
  const inFlight = given.inFlight ?? 1;
  return { startMs: 0, endMs: 10, inFlight, position: inFlight, outcome: "success", ...given };
}

/** A window of a hundred that were served in 50 ms, but for what is given. */
export function windowOf(given: Partial<WindowedSample> = {}): WindowedSample {
  const counts = { sampleCount: 100, droppedCount: 0, inFlightMax: 10 };
  return { rttMs: 50, ...counts, servedPerMs: undefined, endMs: 0, ...given };
}

/** Windows a second apart, the first one at a second. */
export class WindowRow {
  #endMs = 0;

  /** The next one. */
  next(given: Partial<WindowedSample> = {}): WindowedSample {
    this.#endMs += 1_000;
    return windowOf({ endMs: this.#endMs, ...given });
  }
}
