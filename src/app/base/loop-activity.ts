import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import type { Clock } from "../../core/base/clock.js";
import type { MetricGroup, ReadMetric } from "./metrics.js";

/** Time between two measurements of the delay, in milliseconds. Each wakes the process. */
const resolutionMs = 10;

/** Minimum time over which the CPU use is measured, in milliseconds. */
const spanMs = 200;

/** Minimum part of a core that a busy process uses. The measurement alone takes about 0.01. */
const busyRatioMin = 0.03;

/** Time without a busy span after which a process is idle, in milliseconds. */
const idleAfterMs = 5_000;

interface LoopActivityParts {
  readonly clock: Clock;
  /** CPU time in milliseconds. Default: that of this process. */
  readonly usedMs?: () => number;
}

/**
 * Knows whether this process has been almost idle, and measures the event loop's delay otherwise.
 * Measuring takes a timer that wakes the process a hundred times a second, about 1 % of a core: so
 * the delay of an idle loop is not measured, and other parts may poll less often, too. Even a part
 * that polls only once in `spanMs` learns at its next poll that there is work.
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

  /** Whether the process has been almost idle for some seconds. Must be called regularly. */
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

  /** The delay since the last scrape, named as in `prom-client`: time between two measurements. */
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
      // This is the last gauge of a scrape. The next scrape reports the delay from here on.
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
