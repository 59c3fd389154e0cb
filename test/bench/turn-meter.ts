import { openSync, readSync } from "node:fs";
import { performance } from "node:perf_hooks";

/** What a turn of the event loop took, in milliseconds. */
export interface TurnMs {
  /**
   * CPU of the thread that has the event loop: how long nothing else has its turn, where the
   * machine has nothing else to do.
   */
  readonly main: number;
  /** CPU of all threads: those of the garbage collector work beside the loop. */
  readonly all: number;
  /** By the clock, with all that other programs on the machine took meanwhile. */
  readonly clock: number;
}

const none: TurnMs = { main: 0, all: 0, clock: 0 };

/** Measures turns of the event loop in this process: all of them, and the longest. */
export class TurnMeter {
  /** CPU of all threads in all turns. */
  usedUs = 0;
  /** By each measure, the longest of all turns since it was taken last. */
  #longest = none;
  /** Of the first thread, which has the event loop. Source: Linux, sched-stats, /proc/<pid>. */
  readonly #file = openSync("/proc/self/schedstat", "r");
  readonly #schedstats = [Buffer.alloc(64), Buffer.alloc(64)] as const;

  run<T>(turn: () => T): T {
    const [started, ended] = this.#schedstats;
    // The kernel brings the numbers of a running thread up to date for this call alone.
    process.cpuUsage();
    const startMs = performance.now();
    const before = process.cpuUsage();
    readSync(this.#file, started, 0, started.length, 0);
    const made = turn();
    const { user, system } = process.cpuUsage(before);
    readSync(this.#file, ended, 0, ended.length, 0);
    const clock = performance.now() - startMs;
    // Read as texts only now: what that allocates may make the collector run.
    const main = (ranNs(ended) - ranNs(started)) / 1_000_000;
    this.usedUs += user + system;
    this.#longest = longer(this.#longest, { main, all: (user + system) / 1_000, clock });
    return made;
  }

  takeLongest(): TurnMs {
    const longest = this.#longest;
    this.#longest = none;
    return longest;
  }
}

function ranNs(schedstat: Buffer): number {
  return Number.parseInt(schedstat.toString("latin1"), 10);
}

/** By each measure the longer of two. */
export function longer(one: TurnMs, other: TurnMs): TurnMs {
  return {
    main: Math.max(one.main, other.main),
    all: Math.max(one.all, other.all),
    clock: Math.max(one.clock, other.clock),
  };
}

/** The longest turns of seconds: the median by each measure, and the longest of all. */
export interface LongestTurns {
  readonly median: TurnMs;
  readonly most: TurnMs;
}

export function longestTurns(seconds: readonly TurnMs[]): LongestTurns {
  const middle = (of: (turn: TurnMs) => number): number => {
    const sorted = seconds.map(of).toSorted((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 2)] ?? 0;
  };
  return {
    median: {
      main: middle(({ main }) => main),
      all: middle(({ all }) => all),
      clock: middle(({ clock }) => clock),
    },
    most: seconds.reduce(longer, none),
  };
}

/** What is beside the main thread's median. */
export function formatTurns({ median, most }: LongestTurns): string {
  const ms = (value: number): string => value.toFixed(1);
  const all = `all threads ${ms(median.all)}, by the clock ${ms(median.clock)} ms`;
  return `CPU of the event loop's thread, median of seconds; ${all}; the longest ${ms(most.main)}`;
}
