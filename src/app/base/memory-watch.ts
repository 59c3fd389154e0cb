import { totalmem } from "node:os";
import { constants, type PerformanceEntry, PerformanceObserver } from "node:perf_hooks";
import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Cancel, Clock } from "../../core/base/clock.js";
import type { MemoryCause, Pressure } from "../../decide/rate-limit/pressure.js";

/** The part of the heap for old objects from which on memory counts as used up. */
export const heapRatioMax = 0.85;

/** The part of the memory that the process may have, of which RSS counts the same. */
export const residentRatioMax = 0.9;

/**
 * The part of it that must be in use besides: what was freed stays resident where the C library
 * keeps it for later (freed 200 MB in pieces of 16 KB: 240 MB resident before and after), and would
 * never be given back.
 */
export const inUseRatioMax = 0.5;

/** Time between two looks, in milliseconds: one costs some microseconds. */
const lookMs = 100;

/** The same while the process idles. */
const idleLookMs = 250;

/** Least time between two rounds of the collector that we ask for, in milliseconds. */
export const collectEveryMs = 5_000;

/** Time between two looks at the memory for young objects, in milliseconds: 20 us each. */
export const youngEveryMs = 5_000;

/** Memory for young objects that an idle process keeps, in bytes. */
export const youngHeldBytesMax = 4_194_304;

/** Who makes less than this between two such looks is quiet: to V8, up to five times as much. */
export const quietBytesMax = 1_048_576;

interface MemoryWatchParts {
  readonly clock: Clock;
  /** Told what is used up. */
  readonly pressure: Pick<Pressure, "memoryFull">;
  /** What this process may have in all; undefined: nobody bounds it. */
  readonly bytesMax: number | undefined;
  /** Default: this process's own. */
  readonly memory?: ProcessMemory;
  /** Whether the process has had next to nothing to do for a while. Default: it never has. */
  readonly isIdle?: () => boolean;
}

/** The memory of a process. */
export interface ProcessMemory {
  /** What is in use of the heap for old objects, as a part of what they may have. */
  heapRatio(): number;
  /** 0 where the system does not say. */
  residentBytes(): number;
  /** What objects and buffers take, with those that the collector has not met yet. */
  inUseBytes(): number;
  /** Calls back after each round of the collector over the whole heap. */
  onCollected(reported: () => void): Cancel;
  /** Runs such a round now. */
  collect(): void;
  /** What is reserved for young objects, and in use of it, with garbage. */
  youngBytes(): { readonly held: number; readonly used: number };
  /** Runs a round over young objects: 1 to 7 ms. In an idle process V8 then gives memory back. */
  collectYoung(): void;
}

/**
 * Looks at what memory this process uses, until it is cancelled. Of the heap what lived through the
 * last round over all of it counts: before one, garbage fills any heap to its brim.
 *
 * Who answers without reading anything makes hardly any garbage, so V8 would not look again for
 * long: while memory is used up we have it look, each `collectEveryMs`. Nor would it look again
 * after a load, and keep the 32 MB that young objects had: that is done here as well.
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
    // Less than before: V8 has collected meanwhile, so much was made.
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

/** What the container that this runs in may have; undefined where nobody bounds it. */
export function containerBytesMax(): number | undefined {
  const bytes = process.constrainedMemory();
  return bytes > 0 && bytes < totalmem() ? bytes : undefined;
}

/**
 * What V8 keeps for young objects beside the old ones: three semi-spaces of 16 MiB each by default.
 * They are in its limit of the heap, which so is never reached: a process with
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
      // Node opens a file of /proc for it, and there may be no descriptor left.
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
