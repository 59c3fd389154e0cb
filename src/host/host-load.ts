import { defaultHostFull, type HostReadings } from "../core/admission/host-reading.js";
import { hostLoadRatio } from "../core/admission/load.js";
import type { Cancel, Clock } from "../core/base/clock.js";
import { DecayedMean } from "../core/collections/decayed-sum.js";
import { type EventLoopDelay, watchEventLoop } from "./event-loop-delay.js";
import { hostRates } from "./host-rates.js";
import { HostReader } from "./host-reader.js";

/** Readings that are a load of 1 where nobody says otherwise. */
const defaultFull: HostReadings = { ...defaultHostFull, eventLoopDelay: 100 };

/** How the host is read, and when it is full. */
export interface HostLoadOptions {
  readonly clock: Clock;
  /** Time between two readings, in milliseconds, from 100. Default 1,000 */
  readonly everyMs?: number;
  /** The readings that are a load of 1; those left out are not looked at. Default `defaultFull` */
  readonly full?: HostReadings;
  /** The folder in which `/proc` and `/sys/fs/cgroup` of the host are. Default `/` */
  readonly root?: string;
  /** Told all readings each time. Default: nobody is */
  readonly onRead?: (readings: HostReadings) => void;
  /** For tests. Default: the files below `root` */
  readonly reader?: Pick<HostReader, "read">;
  /** For tests. Default: the event loop of this process */
  readonly eventLoop?: EventLoopDelay;
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

/** Over which time the run queue is averaged: the time constant, in milliseconds. */
const runQueueMemoryMs = 5_000;

/** Time to the first reading, in milliseconds: a rate needs two looks. */
const firstMs = 100;

/** Reads the host until `close`. */
export function openHostLoad(options: HostLoadOptions): HostLoad {
  const { clock, everyMs = 1_000, full = defaultFull, onRead = () => {} } = options;
  const { reader = new HostReader(options.root), eventLoop = watchEventLoop() } = options;
  const runQueue = new DecayedMean(runQueueMemoryMs);
  let sample = reader.read();
  let sampledMs = clock.monotonicMs();
  let readings: HostReadings = { memory: sample.memoryRatio };
  let cancel: Cancel = () => {};
  const read = (): void => {
    cancel = clock.schedule(everyMs, read);
    const [before, beforeMs] = [sample, sampledMs];
    sampledMs = clock.monotonicMs();
    sample = reader.read();
    const { runnableCount, cpusCount } = sample;
    if (runnableCount !== undefined && cpusCount !== undefined) {
      runQueue.add(runnableCount / cpusCount, sampledMs);
    }
    readings = {
      ...hostRates(before, sample, sampledMs - beforeMs),
      runQueue: runQueue.mean,
      eventLoopDelay: eventLoop.takeMs(),
    };
    onRead(readings);
  };
  cancel = clock.schedule(Math.min(firstMs, everyMs), read);
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
    close: () => {
      cancel();
      eventLoop.close();
    },
  };
}
