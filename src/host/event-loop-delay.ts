import { monitorEventLoopDelay } from "node:perf_hooks";

/** Measures the delay of the event loop. */
export interface EventLoopDelay {
  /** Mean delay since the last call, in milliseconds; undefined if nothing was measured. */
  takeMs(): number | undefined;
  close(): void;
}

/** Time between two measurements, in milliseconds. */
const resolutionMs = 20;

/** Measures it by a timer outside of JavaScript, which does not keep the process alive. */
export function watchEventLoop(): EventLoopDelay {
  const histogram = monitorEventLoopDelay({ resolution: resolutionMs });
  histogram.enable();
  return {
    takeMs: () => {
      const { mean } = histogram;
      histogram.reset();
      // NaN before the first measurement.
      return Number.isFinite(mean) ? Math.max(0, mean / 1_000_000 - resolutionMs) : undefined;
    },
    close: () => {
      histogram.disable();
    },
  };
}
