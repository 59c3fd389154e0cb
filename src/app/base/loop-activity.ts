import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import type { Clock } from "../../core/base/clock.js";
import type { MetricGroup, ReadMetric } from "./metrics.js";

/** Time between two measurements of the delay, in milliseconds; each wakes the process. */
const resolutionMs = 10;

/** Least time over which the use of the CPU is measured, in milliseconds. */
const spanMs = 200;

/** The part of a core from which on a process is busy: measuring alone takes about 0.01. */
const busyRatioMin = 0.03;

/** How long a process has been busy in no span before it is idle, in milliseconds. */
const idleAfterMs = 5_000;

interface LoopActivityParts {
  readonly clock: Clock;
  /** CPU time in milliseconds. Default: this process's. */
  readonly usedMs?: () => number;
}

/**
 * Knows whether this process has had next to nothing to do, and measures the event loop's delay
 * while it has. Measuring takes a timer that wakes the process a hundred times a second, about 1 %
 * of a core: so nobody measures the delay of a loop that idles, and others may look less often,
 * too. Whoever looks as seldom as once in `spanMs` knows at its next look that there is work.
 */
export class LoopActivity {
  readonly #clock: Clock;
  readonly #usedMs: () => number;
  readonly #delay = monitorEventLoopDelay({ resolution: resolutionMs });
  #spanStartMs: number;
  #spanUsedMs: number;
  #busyMs: number;
  #isIdle = false;

  constructor({ clock, usedMs = ownUsedMs }: LoopActivityParts) {
    this.#clock = clock;
    this.#usedMs = usedMs;
    this.#spanStartMs = clock.monotonicMs();
    this.#spanUsedMs = usedMs();
    this.#busyMs = this.#spanStartMs;
    this.#delay.enable();
  }

  /** Whether it has had next to nothing to do for some seconds. Is asked regularly. */
  isIdle(): boolean {
    const nowMs = this.#clock.monotonicMs();
    const elapsedMs = nowMs - this.#spanStartMs;
    if (elapsedMs < spanMs) return this.#isIdle;
    const usedMs = this.#usedMs();
    if (usedMs - this.#spanUsedMs >= busyRatioMin * elapsedMs) this.#busyMs = nowMs;
    this.#spanStartMs = nowMs;
    this.#spanUsedMs = usedMs;
    const isIdle = nowMs - this.#busyMs >= idleAfterMs;
    if (isIdle !== this.#isIdle) {
      this.#isIdle = isIdle;
      if (isIdle) this.#delay.disable();
      else this.#delay.enable();
    }
    return isIdle;
  }

  /** The delay since the last scrape, as `prom-client` names it: time between two measurements. */
  get metrics(): MetricGroup {
    return { gauges: delayGauges.map((gauge) => this.#gauge(gauge)) };
  }

  close(): void {
    this.#delay.disable();
  }

  #gauge({ name, help, of }: DelayGauge): ReadMetric {
    const read = (set: (value: number) => void): void => {
      const delay = this.#delay;
      set(delay.count === 0 ? resolutionMs / 1_000 : of(delay) / 1e9);
      // The last one of a scrape; the next one tells of what comes.
      if (name === delayGauges.at(-1)?.name) delay.reset();
    };
    return { name, help, read };
  }
}

interface DelayGauge {
  readonly name: string;
  readonly help: string;
  /** Nanoseconds. */
  readonly of: (delay: IntervalHistogram) => number;
}

function delayGauge(what: string, { help, of }: Pick<DelayGauge, "help" | "of">): DelayGauge {
  return { name: `nodejs_eventloop_lag_${what}_seconds`, help, of };
}

/** Source: `prom-client`, lib/metrics/eventLoopLag.js. */
const delayGauges: readonly DelayGauge[] = [
  delayGauge("min", { help: "The minimum recorded event loop delay.", of: ({ min }) => min }),
  delayGauge("max", { help: "The maximum recorded event loop delay.", of: ({ max }) => max }),
  delayGauge("mean", {
    help: "The mean of the recorded event loop delays.",
    of: ({ mean }) => mean,
  }),
  delayGauge("stddev", {
    help: "The standard deviation of the recorded event loop delays.",
    of: ({ stddev }) => stddev,
  }),
  ...[50, 90, 99].map((percent) =>
    delayGauge(`p${percent}`, {
      help: `The ${percent}th percentile of the recorded event loop delays.`,
      of: (delay) => delay.percentile(percent),
    }),
  ),
];

function ownUsedMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
