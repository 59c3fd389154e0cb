import { type HostReadings, hostLoadRatio } from "../core/admission/host-reading.js";
import type { Cancel, Clock } from "../core/base/clock.js";

/** How the host is read, and when it is full. */
export interface HostLoadOptions {
  readonly clock: Clock;
  /** Time between two readings, in milliseconds, from 100. Default 1,000 */
  readonly everyMs?: number;
  /** The readings that are a load of 1; those left out are not looked at. Default `defaultFull` */
  readonly full?: HostReadings;
  /** The folder in which `/proc` and `/sys/fs/cgroup` of the host are. Default `/` */
  readonly root?: string;
}

/**
 * What the host of this process, or its cgroup, had to give in the last `everyMs`. It is read once
 * in that time, and never keeps the process alive. A reading is undefined where the host does not
 * have it, and those over time before the second reading.
 */
export interface HostLoad {
  /** All readings; the others are some of them. */
  readonly readings: HostReadings;
  /** CPU time in use over the limit of the cgroup, or without one over all CPUs, 0 to 1. */
  readonly cpuRatio: number | undefined;
  /** Memory in use without reclaimable page cache, over the limit or all memory, 0 to 1. */
  readonly memoryRatio: number | undefined;
  /** The shares of time, 0 to 1, in which some thread waited, or all did (PSI). */
  readonly pressure: {
    readonly cpuRatio: number | undefined;
    readonly memoryRatio: number | undefined;
    readonly memoryStallRatio: number | undefined;
  };
  /** The mean delay of the event loop, in milliseconds. */
  readonly eventLoopDelayMs: number | undefined;
  /** The load: 0 is idle, 1 is full, at most 10; 0 where nothing could be read. */
  loadRatio(): number;
  /** Reads nothing any more. */
  close(): void;
}

/** Readings that are a load of 1 where nobody says otherwise. */
export const defaultFull: HostReadings = {
  cpu: 0.9,
  memory: 0.95,
  memoryStall: 0.1,
  eventLoopDelay: 100,
};

/** Reads the host until `close`. */
export function createHostLoad(options: HostLoadOptions): HostLoad {
  const { clock, everyMs = 1_000, full = defaultFull } = options;
  let readings: HostReadings = {};
  let cancel: Cancel = () => {};
  const read = (): void => {
    cancel = clock.schedule(everyMs, read);
    readings = {};
  };
  read();
  return {
    get readings() {
      return readings;
    },
    get cpuRatio() {
      return readings.cpu;
    },
    get memoryRatio() {
      return readings.memory;
    },
    get pressure() {
      const { cpuPressure, memoryPressure, memoryStall } = readings;
      return {
        cpuRatio: cpuPressure,
        memoryRatio: memoryPressure,
        memoryStallRatio: memoryStall,
      };
    },
    get eventLoopDelayMs() {
      return readings.eventLoopDelay;
    },
    loadRatio: () => hostLoadRatio(readings, full) ?? 0,
    close: () => cancel(),
  };
}
