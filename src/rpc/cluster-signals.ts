import type { NodeLatency } from "../core/feedback.js";
import { LatencyWindow } from "./latency-window.js";
import type { ClusterCounter, MetricSample } from "./metrics-message.js";

/** What an Envoy said of one cluster since it was asked last. */
export interface ClusterSummary {
  /** When it spoke of it last, on our monotonic clock. */
  readonly atMs: number;
  readonly inFlight: number;
  /** Requests that ended, without those that Envoy refused, and the time in which they did. */
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
  /** As Envoy counts them: what it dropped is among them. */
  readonly errorCount: number;
  readonly dropCount: number;
  readonly coveredMs: number;
}

/** Metrics that are older are not believed any more, and load reports speak in their place. */
export const metricsFreshMs = 3_500;

/**
 * A stamp this much before the last one is a clock that was set back, in milliseconds; any less is
 * a message that was overtaken or came twice.
 */
export const clockStepMs = 60_000;

type ClusterSample = Exclude<MetricSample, { readonly kind: "gradient" }>;

/**
 * What one Envoy says of one cluster, in statistics, in load reports or in both. Numbers of
 * statistics are preferred while they come: they have latencies, and are as of the same moment.
 */
export class ClusterSignals {
  readonly #latency = new LatencyWindow();
  readonly #stamps = new Map<string, number>();
  #counts = emptyCounts();
  #metricsAtMs = Number.NEGATIVE_INFINITY;
  #metricsInFlight = 0;
  #metricsCoveredMs = 0;
  #load = emptyLoad();
  #loadAtMs = Number.NEGATIVE_INFINITY;
  #loadInFlight = 0;
  #connectionOverflowCount = 0;

  /** When it was spoken of last; never: minus infinity. */
  get atMs(): number {
    return Math.max(this.#metricsAtMs, this.#loadAtMs);
  }

  /** Times that the breaker of connections was full, since it is known. */
  get connectionOverflowCount(): number {
    return this.#connectionOverflowCount;
  }

  /** One number of a flush. False for one that came before, or was overtaken. */
  addSample(sample: ClusterSample, nowMs: number): boolean {
    const series = sample.kind === "count" ? sample.series : sample.kind;
    if (sample.stampMs > 0 && !this.#isNews(series, sample.stampMs)) return false;
    this.#metricsAtMs = nowMs;
    if (sample.kind === "inFlight") this.#metricsInFlight = sample.value;
    else if (sample.kind === "latency") {
      this.#latency.addBuckets(sample.count, sample.sumMs, sample.buckets);
    } else if (sample.kind === "quantiles") this.#latency.addQuantiles(sample, sample);
    else if (sample.counter === "connectionsOverflowed") {
      this.#connectionOverflowCount += sample.delta;
    } else this.#counts[sample.counter] += sample.delta;
    return true;
  }

  /** A flush has covered so much time; asked before its samples are added. */
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

  /** A load report that does not speak of it: nothing is in work. */
  addIdleLoad(coveredMs: number, nowMs: number): void {
    if (this.#loadAtMs === Number.NEGATIVE_INFINITY) return;
    this.#loadAtMs = nowMs;
    this.#loadInFlight = 0;
    this.#load.coveredMs += coveredMs;
  }

  /** What has come since this was called last. */
  take(nowMs: number): ClusterSummary {
    const isByMetrics = nowMs - this.#metricsAtMs <= metricsFreshMs;
    const summary = isByMetrics ? this.#byMetrics() : this.#byLoad();
    this.#counts = emptyCounts();
    this.#metricsCoveredMs = 0;
    this.#load = emptyLoad();
    return { ...summary, atMs: this.atMs };
  }

  /**
   * Envoy's own refusals are answered with 503: they are among the failed and the completed ones,
   * and taken out of both.
   */
  #byMetrics(): Omit<ClusterSummary, "atMs"> {
    const { completed, failed, overflowed, dropped } = this.#counts;
    const dropCount = overflowed + dropped;
    const latency = this.#latency.take();
    return {
      inFlight: Math.round(this.#metricsInFlight),
      endedCount: Math.max(latency.count, completed - dropCount),
      coveredMs: this.#metricsCoveredMs,
      latency,
      errorCount: Math.max(0, failed - dropCount),
      dropCount,
      overflowCount: overflowed,
    };
  }

  /**
   * Load reports count a refusal among the errors where a host had been chosen for it (the breaker
   * of requests), and not where none had (that of pending ones), and do not say how many of each.
   * All are taken out: an error that goes unseen costs less than a law that takes Envoy's refusals
   * for the upstream's failures, and lowers its limit for them.
   */
  #byLoad(): Omit<ClusterSummary, "atMs"> {
    const { successCount, errorCount, dropCount, coveredMs } = this.#load;
    const failedCount = Math.max(0, errorCount - dropCount);
    return {
      inFlight: this.#loadInFlight,
      endedCount: successCount + failedCount,
      coveredMs,
      latency: this.#latency.take(),
      errorCount: failedCount,
      dropCount,
      overflowCount: dropCount,
    };
  }

  #isNews(series: string, stampMs: number): boolean {
    const lastMs = this.#stamps.get(series) ?? 0;
    if (stampMs <= lastMs && lastMs - stampMs < clockStepMs) return false;
    this.#stamps.set(series, stampMs);
    return true;
  }
}

type Counts = Record<Exclude<ClusterCounter, "connectionsOverflowed">, number>;

function emptyCounts(): Counts {
  return { completed: 0, failed: 0, overflowed: 0, dropped: 0 };
}

function emptyLoad(): {
  successCount: number;
  errorCount: number;
  dropCount: number;
  coveredMs: number;
} {
  return { successCount: 0, errorCount: 0, dropCount: 0, coveredMs: 0 };
}
