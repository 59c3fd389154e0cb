import { getHeapStatistics } from "node:v8";

/** Maximum bytes of data that calls and Envoys cause: of caches, and of calls in progress. */
export interface CacheBounds {
  /** Records of keys: `DeciderParts.keyRecordsBytesMax`. */
  readonly keyRecordsBytesMax: number;
  /** Queries of known requests: `RequestCacheBounds.keptBytesMax`. */
  readonly requestCacheBytesMax: number;
  /** The most frequent keys, shown to people: `DecisionSamplerParts.frequentKeysBytesMax`. */
  readonly frequentKeysBytesMax: number;
  /** Calls in progress: `PressureOptions.requestsInFlightBytesMax`. */
  readonly requestsInFlightBytesMax: number;
  /** Data that Envoys report about themselves and clusters: `NodeRegistryParts.nodesBytesMax`. */
  readonly nodesBytesMax: number;
  /** Buckets of RLQS: `QuotaRegistryParts.bucketsBytesMax`. */
  readonly quotaBucketsBytesMax: number;
}

/**
 * Returns bounds that follow the heap, by who fills them: three eighths for callers, three eighths
 * for Envoys. The rest is for short-lived objects of both. If `cacheBytesMax` keeps callers below
 * their part of a large heap, buckets get the remainder.
 *
 * @param cacheBytesMax maximum of one cache. More than the default of the setting is of no use: a
 *   policy that needs it asks a store that takes longer than to match again
 * @param heapBytesMax maximum size of the heap. Default: the limit that V8 reports
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
