import { keysOf } from "../base/key-of.js";

/** Description of a host reading, and its default thresholds. */
interface HostReadingTraits {
  /** One line for documentation. */
  readonly docs: string;
  /** The reading up to which there is no reason to admit less. */
  readonly target: number;
  /** The reading from which as little as possible is admitted; more than `target`. */
  readonly critical: number;
}

/**
 * Readings of the host that a process runs on, by name. All but `runQueue` and `eventLoopDelay` are
 * ratios from 0 to 1.
 */
export const hostReadings = {
  cpu: {
    docs: "CPU time in use over the CPU limit of the cgroup, or without one over all CPUs",
    target: 0.7,
    critical: 0.95,
  },
  cpuThrottling: {
    docs: "the share of the CPU limit's periods in which the limit throttled the cgroup",
    target: 0.05,
    critical: 0.5,
  },
  cpuPressure: {
    docs: "the share of time in which a thread waited for a CPU (PSI `some`)",
    target: 0.2,
    critical: 0.8,
  },
  memory: {
    docs:
      "memory in use, without page cache that can be reclaimed, over the limit of the cgroup, " +
      "or without one over all memory",
    target: 0.8,
    critical: 0.95,
  },
  memoryPressure: {
    docs: "the share of time in which a thread waited for memory (PSI `some`)",
    target: 0.05,
    critical: 0.4,
  },
  memoryStall: {
    docs: "the share of time in which all threads waited for memory (PSI `full`)",
    target: 0.01,
    critical: 0.1,
  },
  runQueue: {
    docs: "threads that run or wait for a CPU, for each CPU of the host; the mean of some seconds",
    target: 1,
    critical: 3,
  },
  eventLoopDelay: {
    docs: "the mean delay of this process's event loop, in milliseconds",
    target: 20,
    critical: 200,
  },
} as const satisfies Readonly<Record<string, HostReadingTraits>>;

/** The name of a reading of the host. */
export type HostReadingName = keyof typeof hostReadings;

/** Names of all readings. */
export const hostReadingNames: readonly HostReadingName[] = keysOf(hostReadings);

/** Readings of the host, by name; one that the host does not have, or not yet, is left out. */
export type HostReadings = { readonly [Name in HostReadingName]?: number | undefined };

/** Default readings that are a load of 1. */
export const defaultHostFull = { cpu: 0.9, memory: 0.95, memoryStall: 0.1 } as const;
