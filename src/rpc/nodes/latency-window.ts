import type { NodeLatency } from "../../core/feedback/feedback.js";
import { bucketsMax, type LatencyBucket } from "./metrics-message.js";

type OpenLatency = { -readonly [field in keyof NodeLatency]: NodeLatency[field] };

/** The latencies of one cluster at one Envoy since the last call of `take`. */
export class LatencyWindow {
  #count = 0;
  #sumMs = 0;
  /** Requests by the upper bound of their bucket, not cumulative. */
  #buckets: Map<number, number> | undefined;
  /** From quantiles: the minimum, and the medians of the flushes with their weights. */
  #minMs: number | undefined;
  #medianSumMs = 0;
  #medianCount = 0;
  /** The Envoy sends buckets. The requests of its quantiles are counted in these too. */
  #hasBuckets = false;
  readonly #taken: OpenLatency = { count: 0, sumMs: 0.5, p50: undefined, minMs: undefined };

  /** Requests since the last call of `take`. */
  get count(): number {
    return this.#count;
  }

  /** Adds a flush of cumulative buckets. */
  addBuckets(count: number, sumMs: number, buckets: readonly LatencyBucket[]): void {
    if (!this.#hasBuckets) {
      // Quantiles of this flush may have arrived before and would count twice.
      this.#count = 0;
      this.#sumMs = 0;
      this.#hasBuckets = true;
    }
    this.#count += count;
    this.#sumMs += sumMs;
    // Quantiles are more precise for the median, so buckets are ignored if there are any.
    if (this.#medianCount > 0) return;
    const known = this.#buckets ?? new Map<number, number>();
    this.#buckets = known;
    let below = 0;
    for (const bucket of buckets) {
      const inBucket = bucket.count - below;
      below = Math.max(below, bucket.count);
      // An empty bucket is the lower bound of the next one.
      if (!(inBucket >= 0)) continue;
      const count = known.get(bucket.upTo);
      // An Envoy always sends the same buckets. One that varies them must not use more memory.
      if (count === undefined && known.size >= bucketsMax) continue;
      known.set(bucket.upTo, (count ?? 0) + inBucket);
    }
  }

  /** Adds a flush of quantiles. */
  addQuantiles(
    { count, sumMs }: { readonly count: number; readonly sumMs: number },
    { minMs, p50Ms }: { readonly minMs: number | undefined; readonly p50Ms: number | undefined },
  ): void {
    if (count === 0) return;
    if (!this.#hasBuckets) {
      this.#count += count;
      this.#sumMs += sumMs;
    }
    if (minMs !== undefined) this.#minMs = Math.min(this.#minMs ?? minMs, minMs);
    if (p50Ms === undefined) return;
    this.#medianSumMs += p50Ms * count;
    this.#medianCount += count;
  }

  /** Returns what was reported since the last call. The object is valid until the next call. */
  take(): NodeLatency {
    const taken = this.#taken;
    taken.count = this.#count;
    taken.sumMs = this.#sumMs;
    taken.p50 = this.#p50();
    taken.minMs = this.#minMs;
    this.#count = 0;
    this.#sumMs = 0;
    this.#buckets?.clear();
    this.#minMs = undefined;
    this.#medianSumMs = 0;
    this.#medianCount = 0;
    return taken;
  }

  /**
   * The median: from quantiles, as the weighted mean over several flushes; from buckets alone, by
   * linear interpolation within the bucket.
   *
   * Example: with 4 up to 10 ms and 4 more up to 25 ms, the median is 10 ms. With 2 and 6, it is 15
   * ms.
   */
  #p50(): number | undefined {
    if (this.#medianCount > 0) return this.#medianSumMs / this.#medianCount;
    const half = this.#count / 2;
    if (half === 0) return undefined;
    let below = 0;
    let fromMs = 0;
    for (const [upToMs, count] of [...(this.#buckets ?? [])].sort(
      ([one], [other]) => one - other,
    )) {
      if (below + count >= half && Number.isFinite(upToMs)) {
        return fromMs + ((half - below) / count) * (upToMs - fromMs);
      }
      below += count;
      fromMs = upToMs;
    }
    return undefined;
  }
}

/** Combines the latencies of several clusters of one service. */
export function joinLatencies(latencies: readonly NodeLatency[]): NodeLatency {
  const reported = latencies.filter(({ count }) => count > 0);
  const [only] = reported;
  if (only !== undefined && reported.length === 1) return only;
  let count = 0;
  let sumMs = 0;
  let medianSumMs = 0;
  let medianCount = 0;
  let leastMs = Number.POSITIVE_INFINITY;
  for (const { count: weight, sumMs: more, p50, minMs } of reported) {
    count += weight;
    sumMs += more;
    leastMs = Math.min(leastMs, minMs ?? Number.POSITIVE_INFINITY);
    if (p50 === undefined) continue;
    medianSumMs += p50 * weight;
    medianCount += weight;
  }
  return {
    count,
    sumMs,
    ...(medianCount === 0 ? {} : { p50: medianSumMs / medianCount }),
    ...(leastMs === Number.POSITIVE_INFINITY ? {} : { minMs: leastMs }),
  };
}
