import type { Cancel, Clock } from "../../core/base/clock.js";
import { HostReader } from "../../host/host-reader.js";

/** Reason for a late event loop: see `lateReasonOf`. */
type LateReason = "throttled" | "busy" | "starved";

/** CPU use of this process during a period. */
interface CpuUse {
  readonly elapsedMs: number;
  /** On all CPUs together. */
  readonly usedMs: number;
  /** Time for which the container's CPU limit throttled the process. 0 without a limit. */
  readonly throttledMs: number;
  /** Number of periods of the limit in which it was throttled. */
  readonly throttledCount: number;
}

/** Source of CPU times. */
interface CpuReadings {
  usedMs(): number;
  throttling: HostReader["throttling"];
}

interface CpuWatchParts {
  readonly clock: Clock;
  /** Default: this process's own. */
  readonly readings?: CpuReadings;
}

/** Time between two samples, in milliseconds: one costs some tens of microseconds. */
const sampleMs = 1_000;

/** Measures the CPU use of this process over the last one to two seconds, until `close`. */
export class CpuWatch {
  readonly #clock: Clock;
  readonly #readings: CpuReadings;
  #before: CpuSample;
  #last: CpuSample;
  #cancel: Cancel;

  constructor({ clock, readings = ownReadings() }: CpuWatchParts) {
    this.#clock = clock;
    this.#readings = readings;
    this.#last = this.#sample();
    this.#before = this.#last;
    this.#cancel = this.#schedule();
  }

  /** From the sample before the last one until now. */
  get use(): CpuUse {
    const now = this.#sample();
    const before = this.#before;
    return {
      elapsedMs: Math.round(now.atMs - before.atMs),
      usedMs: Math.round(now.usedMs - before.usedMs),
      throttledMs: Math.round(now.throttledMs - before.throttledMs),
      throttledCount: now.throttledCount - before.throttledCount,
    };
  }

  close(): void {
    this.#cancel();
  }

  #schedule(): Cancel {
    return this.#clock.schedule(sampleMs, () => {
      this.#before = this.#last;
      this.#last = this.#sample();
      this.#cancel = this.#schedule();
    });
  }

  #sample(): CpuSample {
    const { throttledUs, throttledCount } = this.#readings.throttling() ?? notThrottled;
    return {
      atMs: this.#clock.monotonicMs(),
      usedMs: this.#readings.usedMs(),
      throttledMs: throttledUs / 1_000,
      throttledCount,
    };
  }
}

interface CpuSample {
  readonly atMs: number;
  readonly usedMs: number;
  readonly throttledMs: number;
  readonly throttledCount: number;
}

const notThrottled = { throttledUs: 0, throttledCount: 0 };

/**
 * Returns why the loop was late. `throttled`: the container's CPU limit stopped it for at least a
 * quarter of the time. `busy`: this process itself used the CPU. `starved`: it could have run, but
 * others ran instead, or it was stopped.
 *
 * @param lateMs how long it was late
 */
export function lateReasonOf({ throttledMs, usedMs }: CpuUse, lateMs: number): LateReason {
  if (throttledMs >= lateMs / 4) return "throttled";
  return usedMs >= 0.8 * lateMs ? "busy" : "starved";
}

/** Remedy for each reason. */
export const lateRemedies: Readonly<Record<LateReason, string>> = {
  throttled: "The container's CPU limit kept this process from running: raise or remove the limit.",
  busy: "This process used the CPU itself: add replicas, or check what else it does.",
  starved: "Other processes used the CPU, or this process was stopped: request more CPU.",
};

function ownReadings(): CpuReadings {
  const reader = new HostReader();
  return {
    usedMs: () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1_000;
    },
    throttling: () => reader.throttling(),
  };
}
