import { getHeapStatistics } from "node:v8";

/** The most bytes of what is kept to be faster, and may be forgotten at any time. */
export interface CacheBounds {
  /** What is remembered of keys: `DeciderParts.keyRecordsBytesMax`. */
  readonly keyRecordsBytesMax: number;
  /** Queries of requests that are known: `KnownRequestsBounds.keptBytesMax`. */
  readonly knownRequestsBytesMax: number;
}

/** More is of no use: a policy that needs it asks a store that takes longer than to match again. */
const cacheBytesMax = 134_217_728;

/**
 * Bounds that follow the heap: with an eighth and a sixteenth of it, three quarters are left for
 * what comes and goes with calls, whoever makes them.
 *
 * @param heapBytesMax what the heap may have. Default: what V8 says
 */
export function cacheBounds(heapBytesMax = getHeapStatistics().heap_size_limit): CacheBounds {
  return {
    keyRecordsBytesMax: Math.min(cacheBytesMax, Math.floor(heapBytesMax / 8)),
    knownRequestsBytesMax: Math.min(cacheBytesMax, Math.floor(heapBytesMax / 16)),
  };
}
