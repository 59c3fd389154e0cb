import { totalmem } from "node:os";
import { constants, type PerformanceEntry, PerformanceObserver } from "node:perf_hooks";
import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Cancel, Clock } from "../../core/base/clock.js";
import type { MemoryCause, Pressure } from "../../decide/rate-limit/pressure.js";

/** Part of the heap for old objects above which memory counts as used up. */
export const heapRatioMax = 0.85;

/** Part of the process's memory bound above which RSS counts as memory used up. */
export const residentRatioMax = 0.9;

/**
 * Part of that bound that must be in use besides. Freed memory stays resident, and is never given
 * back, if the C library keeps it for later (freed 200 MB in pieces of 16 KB: 240 MB resident
 * before and after).
 */
export const inUseRatioMax = 0.5;

/** Time between two measurements, in milliseconds. One costs some microseconds. */
const lookMs = 100;

/** The same while the process is idle. */
const idleLookMs = 250;

/** Minimum time between two requested rounds of the garbage collector, in milliseconds. */
export const collectEveryMs = 5_000;

/** Time between two measurements of the memory for young objects, in milliseconds: 20 us each. */
export const youngEveryMs = 5_000;

/** Memory for young objects that an idle process keeps, in bytes. */
export const youngHeldBytesMax = 4_194_304;

/** Allocation below this between two measurements is quiet. To V8: up to five times as much. */
export const quietBytesMax = 1_048_576;

interface MemoryWatchParts {
  readonly clock: Clock;
  /** Receives which memory is used up. */
  readonly pressure: Pick<Pressure, "memoryFull">;
  /** Maximum memory of this process. Undefined: unbounded. */
  readonly bytesMax: number | undefined;
  /** Default: that of this process. */
  readonly memory?: ProcessMemory;
  /** Whether the process has been almost idle for a while. Default: never. */
  readonly isIdle?: () => boolean;
}

/** The memory of a process. */
export interface ProcessMemory {
  /** Used part of the heap for old objects, as a ratio. */
  heapRatio(): number;
  /** 0 if the system does not report it. */
  residentBytes(): number;
  /** Size of objects and buffers, with those that the collector has not visited yet. */
  inUseBytes(): number;
  /** Calls back after each round of the garbage collector over the whole heap. */
  onCollected(reported: () => void): Cancel;
  /** Runs such a round now. */
  collect(): void;
  /** Memory reserved for young objects, and the part in use, with garbage. */
  youngBytes(): { readonly held: number; readonly used: number };
  /** Runs a round over young objects: 1 to 7 ms. In an idle process V8 then gives memory back. */
  collectYoung(): void;
}

/**
 * Watches the memory of this process until it is cancelled. Of the heap, only what survived the
 * last round over the whole heap counts, because garbage fills any heap before a round.
 *
 * Refusing requests unread makes hardly any garbage, so V8 would start no new round for long. While
 * memory is used up, one is therefore requested each `collectEveryMs`. Nor would V8 start one after
 * a load: it would keep the 32 MB that young objects had. That is done here as well.
 */
export function watchMemory(parts: MemoryWatchParts): Cancel {
  const { clock, pressure, bytesMax = Number.POSITIVE_INFINITY, memory = ownMemory } = parts;
  const { isIdle = () => false } = parts;
  let heapRatio = 0;
  let collectedMs = Number.NEGATIVE_INFINITY;
  let cancel: Cancel;
  let cancelYoung: Cancel;
  let youngBefore = Number.POSITIVE_INFINITY;
  const fullest = (): MemoryCause | undefined => {
    if (heapRatio > heapRatioMax) return "heap";
    if (memory.residentBytes() <= residentRatioMax * bytesMax) return undefined;
    return memory.inUseBytes() > inUseRatioMax * bytesMax ? "residentMemory" : undefined;
  };
  const look = (): void => {
    cancel = clock.schedule(isIdle() ? idleLookMs : lookMs, look);
    pressure.memoryFull = fullest();
    const nowMs = clock.monotonicMs();
    if (pressure.memoryFull === undefined || nowMs - collectedMs < collectEveryMs) return;
    collectedMs = nowMs;
    memory.collect();
  };
  const lookAtYoung = (): void => {
    cancelYoung = clock.schedule(youngEveryMs, lookAtYoung);
    const { held, used } = memory.youngBytes();
    // Less than before: V8 has collected meanwhile, so many objects were allocated.
    const isQuiet = used >= youngBefore && used - youngBefore < quietBytesMax;
    youngBefore = used;
    if (!isQuiet || held <= youngHeldBytesMax) return;
    memory.collectYoung();
    youngBefore = memory.youngBytes().used;
  };
  const stop = memory.onCollected(() => {
    collectedMs = clock.monotonicMs();
    heapRatio = memory.heapRatio();
    pressure.memoryFull = fullest();
  });
  look();
  lookAtYoung();
  return () => {
    stop();
    cancel();
    cancelYoung();
  };
}

/** Maximum memory of the container of this process. Undefined if it is unbounded. */
export function containerBytesMax(): number | undefined {
  const bytes = process.constrainedMemory();
  return bytes > 0 && bytes < totalmem() ? bytes : undefined;
}

/**
 * Memory that V8 keeps for young objects beside the old ones: three semi-spaces of 16 MiB each by
 * default. They count toward V8's heap limit, which is therefore never reached: a process with
 * `--max-old-space-size=96` ends at two thirds of it.
 */
const youngBytes = 3 * 16_777_216;

/** The memory of this process. */
export const ownMemory: ProcessMemory = {
  heapRatio: () => {
    const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
    return used / Math.max(youngBytes, limit - youngBytes);
  },
  residentBytes: () => {
    try {
      return process.memoryUsage.rss();
    } catch {
      // Node opens a file of /proc to read it, and there may be no descriptor left.
      return 0;
    }
  },
  inUseBytes: () => {
    const { used_heap_size: used, external_memory: external } = getHeapStatistics();
    return used + external;
  },
  onCollected: (reported) => {
    const observer = new PerformanceObserver((entries) => {
      if (entries.getEntries().some(isMajor)) reported();
    });
    observer.observe({ entryTypes: ["gc"] });
    return () => observer.disconnect();
  },
  collect: () => collect(),
  youngBytes: () => {
    const space = getHeapSpaceStatistics().find(({ space_name: name }) => name === "new_space");
    return { held: space?.space_size ?? 0, used: space?.space_used_size ?? 0 };
  },
  collectYoung: () => collect({ type: "minor" }),
};

function collect(options?: { readonly type: "minor" }): void {
  // The inspector's HeapProfiler.collectGarbage would never return here.
  setFlagsFromString("--expose-gc");
  const gc: unknown = runInNewContext("gc");
  setFlagsFromString("--no-expose-gc");
  if (typeof gc === "function") gc(options);
}

function isMajor(entry: PerformanceEntry): boolean {
  const kind: unknown = Reflect.get(Object(Reflect.get(entry, "detail")), "kind");
  return kind === constants.NODE_PERFORMANCE_GC_MAJOR;
}
