import type { NodeLatency } from "../../core/feedback/feedback.js";
import { LatencyWindow } from "./latency-window.js";
import type { ClusterCounter, MetricSample } from "./metrics-message.js";

/** What an Envoy said of one cluster since it was asked last. */
export interface ClusterSummary {
  /** When it spoke of it last, on our monotonic clock. */
  readonly atMs: number;
  readonly inFlight: number;
  /** Of them, those at Envoy's priority HIGH; undefined where it does not say. */
  readonly highInFlight: number | undefined;
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
  readonly #high = new HighInFlight();

  /** When it was spoken of last; never: minus infinity. */
  get atMs(): number {
    return Math.max(this.#metricsAtMs, this.#loadAtMs);
  }

  /** Times that the breaker of connections was full, since it is known. */
  get connectionOverflowCount(): number {
    return this.#connectionOverflowCount;
  }

  /** Whether statistics speak of it, so that load reports are not asked. */
  hasMetrics(nowMs: number): boolean {
    return nowMs - this.#metricsAtMs <= metricsFreshMs;
  }

  /** One number of a flush. False for one that came before, or was overtaken. */
  addSample(sample: ClusterSample, nowMs: number): boolean {
    const series = sample.kind === "count" ? sample.series : sample.kind;
    if (sample.stampMs > 0 && !this.#isNews(series, sample.stampMs)) return false;
    this.#metricsAtMs = nowMs;
    if (sample.kind === "inFlight") this.#metricsInFlight = sample.value;
    else if (sample.kind === "highRemaining") this.#high.noteRemaining(sample.value);
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

  /**
   * What has come since this was called last.
   *
   * @param highThreshold of the breaker at HIGH, as it is active; undefined: not known
   */
  take(nowMs: number, highThreshold?: number): ClusterSummary {
    const high = this.#high.take(highThreshold);
    const summary = this.hasMetrics(nowMs) ? this.#byMetrics(high) : this.#byLoad();
    this.#counts = emptyCounts();
    this.#metricsCoveredMs = 0;
    this.#load = emptyLoad();
    return summary;
  }

  /**
   * Envoy's own refusals are answered with 503: they are among the failed and the completed ones,
   * and taken out of both.
   */
  #byMetrics(high: number | undefined): ClusterSummary {
    const { completed, failed, overflowed, dropped } = this.#counts;
    const dropCount = overflowed + dropped;
    const latency = this.#latency.take();
    const inFlight = Math.round(this.#metricsInFlight);
    return {
      atMs: this.atMs,
      inFlight,
      highInFlight: high === undefined ? undefined : Math.min(inFlight, high),
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
  #byLoad(): ClusterSummary {
    const { successCount, errorCount, dropCount, coveredMs } = this.#load;
    const failedCount = Math.max(0, errorCount - dropCount);
    return {
      atMs: this.atMs,
      inFlight: this.#loadInFlight,
      highInFlight: undefined,
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

/**
 * Requests at Envoy's priority HIGH, which it does not count by priority: what its breaker there
 * has left says it, next to the active threshold.
 *
 * That number moves with requests alone. Where nothing goes at HIGH it stands by a threshold of
 * some time ago, next to which any later one would make requests of nothing. So it is looked at
 * when it has moved, and then next to the threshold of before, too: the less of both counts.
 */
class HighInFlight {
  #remaining: number | undefined;
  #seenRemaining: number | undefined;
  #seenThreshold: number | undefined;
  #inFlight: number | undefined;

  noteRemaining(value: number): void {
    this.#remaining = Math.round(value);
  }

  /** Once a second. Undefined where either is not known. */
  take(threshold: number | undefined): number | undefined {
    const remaining = this.#remaining;
    if (threshold === undefined || remaining === undefined) {
      this.#seenThreshold = threshold;
      return undefined;
    }
    // Nothing left is nothing old: who had none in work would have some left.
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

function emptyLoad(): {
  successCount: number;
  errorCount: number;
  dropCount: number;
  coveredMs: number;
} {
  return { successCount: 0, errorCount: 0, dropCount: 0, coveredMs: 0 };
}
