import { getHeapStatistics } from "node:v8";

/** The most bytes of what calls and Envoys bring: of what is kept, and of calls in work. */
export interface CacheBounds {
  /** What is remembered of keys: `DeciderParts.keyRecordsBytesMax`. */
  readonly keyRecordsBytesMax: number;
  /** Queries of requests that are known: `RequestCacheBounds.keptBytesMax`. */
  readonly requestCacheBytesMax: number;
  /** The most frequent keys, for people: `DecisionSamplerParts.frequentKeysBytesMax`. */
  readonly frequentKeysBytesMax: number;
  /** Calls in work: `PressureOptions.requestsInFlightBytesMax`. */
  readonly requestsInFlightBytesMax: number;
  /** What Envoys say of themselves and their clusters: `NodeRegistryParts.nodesBytesMax`. */
  readonly nodesBytesMax: number;
  /** Buckets of RLQS: `QuotaRegistryParts.bucketsBytesMax`. */
  readonly quotaBucketsBytesMax: number;
}

/**
 * Bounds that follow the heap, by who makes them full: callers three eighths, Envoys three eighths.
 * The rest is left for what comes and goes, whoever makes it. What callers leave of a large heap,
 * because of `cacheBytesMax`, is for buckets.
 *
 * @param cacheBytesMax the most of one cache. More than the default of the setting is of no use: a
 *   policy that needs it asks a store that takes longer than to match again
 * @param heapBytesMax what the heap may have. Default: what V8 says
 */
export function cacheBounds(
  { cacheBytesMax }: { readonly cacheBytesMax: number },
  heapBytesMax = getHeapStatistics().heap_size_limit,
): CacheBounds {
  const keyRecordsBytesMax = Math.min(cacheBytesMax, Math.floor(heapBytesMax / 8));
  const requestCacheBytesMax = Math.min(cacheBytesMax, Math.floor(heapBytesMax / 16));
  const frequentKeysBytesMax = Math.min(cacheBytesMax, Math.floor(heapBytesMax / 16));
  const callersBytesMax = keyRecordsBytesMax + requestCacheBytesMax + frequentKeysBytesMax;
  return {
    keyRecordsBytesMax,
    requestCacheBytesMax,
    frequentKeysBytesMax,
    requestsInFlightBytesMax: Math.floor(heapBytesMax / 8),
    nodesBytesMax: Math.floor(heapBytesMax / 4),
    quotaBucketsBytesMax: Math.floor((3 * heapBytesMax) / 8) - callersBytesMax,
  };
}
