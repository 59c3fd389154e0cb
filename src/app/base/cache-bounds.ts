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
 * Bounds that follow the heap, by who makes them full: callers two eighths and two sixteenths,
 * Envoys three eighths. The rest is left for what comes and goes, whoever makes it.
 *
 * @param cacheBytesMax the most of one cache. More than the default of the setting is of no use: a
 *   policy that needs it asks a store that takes longer than to match again
 * @param heapBytesMax what the heap may have. Default: what V8 says
 */
export function cacheBounds(
  { cacheBytesMax }: { readonly cacheBytesMax: number },
  heapBytesMax = getHeapStatistics().heap_size_limit,
): CacheBounds {
  return {
    keyRecordsBytesMax: Math.min(cacheBytesMax, Math.floor(heapBytesMax / 8)),
    requestCacheBytesMax: Math.min(cacheBytesMax, Math.floor(heapBytesMax / 16)),
    frequentKeysBytesMax: Math.min(cacheBytesMax, Math.floor(heapBytesMax / 16)),
    requestsInFlightBytesMax: Math.floor(heapBytesMax / 8),
    nodesBytesMax: Math.floor(heapBytesMax / 4),
    quotaBucketsBytesMax: Math.floor(heapBytesMax / 8),
  };
}
