import { openSync, readSync } from "node:fs";

/** Three whole numbers of 64 bits. */
const schedstatBytesMax = 64;

/** A moment, and what all threads had used until then. */
interface TurnMoment {
  /** What has passed for the first thread, less what it waited for a core that others had. */
  readonly atMs: number;
  readonly cpuMs: number;
}

/**
 * What a turn of the event loop takes: what passes for the first thread, less what it waits for a
 * core that other programs have. What it waits for the collector's threads counts; where these wait
 * for a core themselves, it is bounded by the CPU of all threads, which a turn cannot exceed on idle
 * cores. Source: Linux, sched-stats, /proc/<pid>.
 */
export class TurnClock {
  readonly #file = openSync("/proc/self/schedstat", "r");
  readonly #bytes = Buffer.alloc(schedstatBytesMax);

  read(): TurnMoment {
    const length = readSync(this.#file, this.#bytes, 0, schedstatBytesMax, 0);
    const [, waitedNs] = this.#bytes.toString("latin1", 0, length).split(" ");
    const { user, system } = process.cpuUsage();
    return { atMs: performance.now() - Number(waitedNs) / 1e6, cpuMs: (user + system) / 1_000 };
  }

  /** What has passed: as a turn, and as CPU of all threads. */
  since(before: TurnMoment): { readonly ms: number; readonly cpuMs: number } {
    const { atMs, cpuMs } = this.read();
    const usedMs = cpuMs - before.cpuMs;
    return { ms: Math.min(atMs - before.atMs, usedMs), cpuMs: usedMs };
  }
}

/** Of the longest turns of some seconds. */
export function medianAndMost(times: readonly number[]): readonly [number, number] {
  const sorted = times.toSorted((one, other) => one - other);
  return [sorted[Math.floor(sorted.length / 2)] ?? 0, sorted.at(-1) ?? 0];
}
