import { getHeapStatistics } from "node:v8";
import type { Cancel, Clock } from "../core/clock.js";

/** The part of the heap's limit from which this process counts as overloaded. */
export const heapRatioMax = 0.9;

/** Time between two looks, in milliseconds: one costs a few microseconds. */
const lookMs = 1_000;

/** What is known of this process's heap. */
export interface HeapWatch {
  /** Whether more than `heapRatioMax` of what it may have was in use when it was last looked at. */
  readonly isFull: () => boolean;
  readonly cancel: Cancel;
}

/** Looks at the heap once a second. @param ratio used over limit. Default: what V8 says */
export function watchHeap(clock: Clock, ratio: () => number = heapRatio): HeapWatch {
  let isFull = false;
  let cancel: Cancel;
  const look = (): void => {
    isFull = ratio() > heapRatioMax;
    cancel = clock.schedule(lookMs, look);
  };
  look();
  return { isFull: () => isFull, cancel: () => cancel() };
}

function heapRatio(): number {
  const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
  return used / limit;
}
