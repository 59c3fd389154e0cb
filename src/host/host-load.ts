import { defaultHostFull, type HostReadings } from "../core/admission/host-reading.js";
import { hostLoadRatio } from "../core/admission/load.js";
import type { Cancel, Clock } from "../core/base/clock.js";
import { DecayedMean } from "../core/collections/decayed-sum.js";
import { type EventLoopDelay, watchEventLoop } from "./event-loop-delay.js";
import { hostRates } from "./host-rates.js";
import { HostReader } from "./host-reader.js";

/** Default readings that count as a load of 1. */
const defaultFull: HostReadings = { ...defaultHostFull, eventLoopDelay: 100 };

/** Options for reading the host's load. */
export interface HostLoadOptions {
  readonly clock: Clock;
  /** Time between two readings, in milliseconds, from 100. Default 1,000 */
  readonly everyMs?: number;
  /** The readings that count as a load of 1; those left out are ignored. Default `defaultFull` */
  readonly full?: HostReadings;
  /** The folder that contains the host's `/proc` and `/sys/fs/cgroup`. Default `/` */
  readonly root?: string;
  /** Receives all readings each time. Default: none */
  readonly onRead?: (readings: HostReadings) => void;
  /** For tests. Default: the files below `root` */
  readonly reader?: Pick<HostReader, "read">;
  /** For tests. Default: the event loop of this process */
  readonly eventLoop?: EventLoopDelay;
}

/**
 * Resource use of this process's host, or of its cgroup, in the last `everyMs`. It is read once in
 * that time, and never keeps the process alive. A reading is undefined if the host does not provide
 * it; rates are also undefined before the second reading.
 */
export interface HostLoad {
  /** All readings. The properties below are a selection of them. */
  readonly readings: HostReadings;
  /** CPU time in use over the limit of the cgroup, or over all CPUs if it has no limit, 0 to 1. */
  readonly cpuRatio: number | undefined;
  /** Memory in use without reclaimable page cache, over the limit or all memory, 0 to 1. */
  readonly memoryRatio: number | undefined;
  /** Shares of time, 0 to 1, in which some threads waited, or all of them did (PSI). */
  readonly pressure: {
    readonly cpuRatio: number | undefined;
    readonly memoryRatio: number | undefined;
    readonly memoryStallRatio: number | undefined;
  };
  /** Mean delay of the event loop, in milliseconds. */
  readonly eventLoopDelayMs: number | undefined;
  /** Returns the load: 0 is idle, 1 is full, at most 10; 0 if nothing could be read. */
  loadRatio(): number;
  /** Stops reading. */
  close(): void;
}

/** Time constant over which the run queue is averaged, in milliseconds. */
const runQueueMemoryMs = 5_000;

/** Time to the first reading, in milliseconds. A rate needs two samples. */
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
