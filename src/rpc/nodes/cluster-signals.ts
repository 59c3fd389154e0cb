import type { NodeLatency } from "../../core/feedback/feedback.js";
import { LatencyWindow } from "./latency-window.js";
import type { ClusterCounter, MetricSample } from "./metrics-message.js";

/** What an Envoy has reported about one cluster since the last call. */
export interface ClusterSummary {
  /** The time of its last report, on our monotonic clock. */
  readonly atMs: number;
  readonly inFlight: number;
  /** The part of them at Envoy's priority HIGH. Undefined if unknown. */
  readonly highInFlight: number | undefined;
  /** Completed requests without those that Envoy refused, and the time that they cover. */
  readonly endedCount: number;
  readonly coveredMs: number;
  readonly latency: NodeLatency;
  readonly errorCount: number;
  readonly dropCount: number;
  readonly overflowCount: number;
}

/** One cluster in a load report. */
export interface ClusterLoad {
  readonly cluster: string;
  readonly inFlight: number;
  readonly successCount: number;
  /** As Envoy counts them, including the requests that it dropped. */
  readonly errorCount: number;
  readonly dropCount: number;
  readonly coveredMs: number;
}

/** Metrics older than this are ignored in favor of load reports. */
export const metricsFreshMs = 3_500;

/**
 * A timestamp this far before the last one means that the clock was set back, in milliseconds. A
 * smaller step back means a reordered or duplicate message.
 */
export const clockStepMs = 60_000;

type ClusterSample = Exclude<MetricSample, { readonly kind: "gradient" }>;

/**
 * What one Envoy reports about one cluster in metrics, in load reports, or in both. Metrics are
 * preferred while they arrive, because they include latencies and all refer to one moment.
 */
export class ClusterSignals {
  readonly #latency = new LatencyWindow();
  /** The known series, and the last timestamp of each: a `Map` takes ten times the memory. */
  readonly #series: string[] = [];
  readonly #stampsMs: number[] = [];
  readonly #counts = emptyCounts();
  #metricsAtMs = Number.NEGATIVE_INFINITY;
  #metricsInFlight = 0;
  #metricsCoveredMs = 0;
  readonly #load = emptyLoad();
  #loadAtMs = Number.NEGATIVE_INFINITY;
  #loadInFlight = 0;
  #connectionOverflowCount = 0;
  readonly #high = new HighInFlight();
  readonly #summary = emptySummary();

  /** The time of the last report; minus infinity if there was none. */
  get atMs(): number {
    return Math.max(this.#metricsAtMs, this.#loadAtMs);
  }

  /** The last result of `take`. */
  get summary(): ClusterSummary {
    return this.#summary;
  }

  /** How often the circuit breaker of connections was full. */
  get connectionOverflowCount(): number {
    return this.#connectionOverflowCount;
  }

  /** Whether recent metrics cover the cluster, so that load reports are not needed. */
  hasMetrics(nowMs: number): boolean {
    return nowMs - this.#metricsAtMs <= metricsFreshMs;
  }

  /** Adds one sample of a flush. Returns false for a duplicate or reordered sample. */
  addSample(sample: ClusterSample, nowMs: number): boolean {
    const series = sample.kind === "count" ? sample.series : sample.kind;
    if (sample.stampMs > 0 && !this.#isNews(series, sample.stampMs)) return false;
    this.#metricsAtMs = nowMs;
    if (sample.kind === "inFlight") this.#metricsInFlight = sample.value;
    else if (sample.kind === "highRemaining") this.#high.noteRemaining(sample.value);
    else if (sample.kind === "latency") {
      this.#latency.addBuckets(sample.count, sample.sumMs, sample.buckets);
    } else if (sample.kind === "quantiles") this.#latency.addQuantiles(sample, sample);
    else this.#count(sample.counter, sample.delta);
    return true;
  }

  /** Names each field: V8 allocates an object for a number that is written to a computed one. */
  #count(counter: ClusterCounter, delta: number): void {
    const counts = this.#counts;
    if (counter === "completed") counts.completed += delta;
    else if (counter === "failed") counts.failed += delta;
    else if (counter === "overflowed") counts.overflowed += delta;
    else if (counter === "dropped") counts.dropped += delta;
    else this.#connectionOverflowCount += delta;
  }

  /** Adds the time that a flush covers. Called before its samples are added. */
  addCovered(coveredMs: number): void {
    this.#metricsCoveredMs += coveredMs;
  }

  addLoad(load: ClusterLoad, nowMs: number): void {
    this.#loadAtMs = nowMs;
    this.#loadInFlight = load.inFlight;
    this.#load.successCount += load.successCount;
    this.#load.errorCount += load.errorCount;
    this.#load.dropCount += load.dropCount;
    this.#load.coveredMs += load.coveredMs;
  }

  /** A load report that does not mention the cluster: nothing is in flight. */
  addIdleLoad(coveredMs: number, nowMs: number): void {
    if (this.#loadAtMs === Number.NEGATIVE_INFINITY) return;
    this.#loadAtMs = nowMs;
    this.#loadInFlight = 0;
    this.#load.coveredMs += coveredMs;
  }

  /**
   * Returns what was reported since the last call. The object is valid until the next call:
   * objects created each second for each cluster end up in V8's old generation.
   *
   * @param highThreshold the active threshold of the breaker at HIGH; undefined if unknown
   */
  take(nowMs: number, highThreshold?: number): ClusterSummary {
    const high = this.#high.take(highThreshold);
    if (this.hasMetrics(nowMs)) this.#sumMetrics(high);
    else this.#sumLoads();
    const summary = this.#summary;
    summary.atMs = this.atMs;
    summary.latency = this.#latency.take();
    const counts = this.#counts;
    counts.completed = 0;
    counts.failed = 0;
    counts.overflowed = 0;
    counts.dropped = 0;
    const load = this.#load;
    load.successCount = 0;
    load.errorCount = 0;
    load.dropCount = 0;
    load.coveredMs = 0;
    this.#metricsCoveredMs = 0;
    return summary;
  }

  /**
   * Envoy responds with 503 to requests that it refuses, and counts them as failed and completed.
   * They are subtracted from both.
   */
  #sumMetrics(high: number | undefined): void {
    const { completed, failed, overflowed, dropped } = this.#counts;
    const dropCount = overflowed + dropped;
    const summary = this.#summary;
    summary.inFlight = Math.round(this.#metricsInFlight);
    summary.highInFlight = high === undefined ? undefined : Math.min(summary.inFlight, high);
    summary.endedCount = Math.max(this.#latency.count, completed - dropCount);
    summary.coveredMs = this.#metricsCoveredMs;
    summary.errorCount = Math.max(0, failed - dropCount);
    summary.dropCount = dropCount;
    summary.overflowCount = overflowed;
  }

  /**
   * Load reports count a refusal as an error if a host was already selected (request breaker), but
   * not otherwise (pending request breaker), and do not tell the two apart. All are subtracted:
   * missing an error costs less than taking Envoy's refusals for failures of the upstream, which
   * would lower its limit.
   */
  #sumLoads(): void {
    const { successCount, errorCount, dropCount, coveredMs } = this.#load;
    const failedCount = Math.max(0, errorCount - dropCount);
    const summary = this.#summary;
    summary.inFlight = this.#loadInFlight;
    summary.highInFlight = undefined;
    summary.endedCount = successCount + failedCount;
    summary.coveredMs = coveredMs;
    summary.errorCount = failedCount;
    summary.dropCount = dropCount;
    summary.overflowCount = dropCount;
  }

  #isNews(series: string, stampMs: number): boolean {
    const known = this.#series.indexOf(series);
    const place = known === -1 ? this.#series.push(series) - 1 : known;
    const lastMs = this.#stampsMs[place] ?? 0;
    if (stampMs <= lastMs && lastMs - stampMs < clockStepMs) return false;
    this.#stampsMs[place] = stampMs;
    return true;
  }
}

/**
 * The number of requests in flight at Envoy's priority HIGH. Envoy has no such statistic, so it is
 * derived from the remaining capacity of the HIGH breaker and the active threshold.
 *
 * The remaining capacity is only updated by requests. Without requests at HIGH, it refers to an
 * earlier threshold, and comparing it with a later one would suggest requests that do not exist. It
 * is therefore used only when it has changed, and is also compared with the previous threshold; the
 * lower result counts.
 */
class HighInFlight {
  #remaining: number | undefined;
  #seenRemaining: number | undefined;
  #seenThreshold: number | undefined;
  #inFlight: number | undefined;

  noteRemaining(value: number): void {
    this.#remaining = Math.round(value);
  }

  /** Called once per second. Undefined if either value is unknown. */
  take(threshold: number | undefined): number | undefined {
    const remaining = this.#remaining;
    if (threshold === undefined || remaining === undefined) {
      this.#seenThreshold = threshold;
      return undefined;
    }
    // A remaining capacity of 0 is always current, because it cannot be 0 without requests.
    if (remaining !== this.#seenRemaining || remaining === 0) {
      const possible = [threshold, this.#seenThreshold ?? threshold]
        .map((max) => max - remaining)
        .filter((count) => count >= 0);
      this.#inFlight = possible.length === 0 ? 0 : Math.min(...possible);
    }
    this.#seenRemaining = remaining;
    this.#seenThreshold = threshold;
    return this.#inFlight;
  }
}

type Counts = Record<Exclude<ClusterCounter, "connectionsOverflowed">, number>;

function emptyCounts(): Counts {
  return { completed: 0, failed: 0, overflowed: 0, dropped: 0 };
}

function emptyLoad(): Record<"successCount" | "errorCount" | "dropCount" | "coveredMs", number> {
  return { successCount: 0, errorCount: 0, dropCount: 0, coveredMs: 0 };
}

type OpenSummary = { -readonly [field in keyof ClusterSummary]: ClusterSummary[field] };

/** Initial values. Fields that may be fractional start with a fraction. */
function emptySummary(): OpenSummary {
  return {
    atMs: 0.5,
    inFlight: 0,
    highInFlight: undefined,
    endedCount: 0,
    coveredMs: 0.5,
    latency: { count: 0, sumMs: 0 },
    errorCount: 0,
    dropCount: 0,
    overflowCount: 0,
  };
}
