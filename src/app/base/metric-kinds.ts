import { Counter, Gauge, Histogram, type MetricValueWithName, Registry } from "prom-client";
import { type DecisionCounters, latencyBoundsMs } from "../../decide/rate-limit/counters.js";

/** The labels of a series. */
export type Labels = Readonly<Record<string, string>>;

/** A metric and how to read it: `add` is called once for each of its series. */
export interface ReadMetric {
  readonly name: string;
  readonly help: string;
  /** Absent where there is one series without labels. */
  readonly labelNames?: readonly string[];
  readonly read: (add: (value: number, labels?: Labels) => void) => void;
}

/** Adds what only grows, until the process ends. */
export function addCounter(registry: Registry, { name, help, labelNames, read }: ReadMetric): void {
  new Counter({
    name,
    help,
    labelNames: labelNames ?? [],
    registers: [registry],
    collect() {
      this.reset();
      read((value, labels) => (labels === undefined ? this.inc(value) : this.inc(labels, value)));
    },
  });
}

/** Adds what is as it is now. */
export function addGauge(registry: Registry, { name, help, labelNames, read }: ReadMetric): void {
  new Gauge({
    name,
    help,
    labelNames: labelNames ?? [],
    registers: [registry],
    collect() {
      this.reset();
      read((value, labels) => (labels === undefined ? this.set(value) : this.set(labels, value)));
    },
  });
}

/** A histogram as the library writes it. */
interface RenderedHistogram {
  readonly name: string;
  readonly help: string;
  readonly type: "histogram";
  readonly aggregator: "sum";
  readonly values: MetricValueWithName<string>[];
}

/** A histogram of decision times. */
export interface ReadLatency {
  readonly name: string;
  readonly help: string;
  readonly labels: Labels;
  /** What one is in the series, in milliseconds: 1,000 for seconds. */
  readonly unitMs: number;
  readonly counters: DecisionCounters;
}

/** Shows the latency counts, which are kept in milliseconds, in another unit. */
class LatencyHistogram extends Histogram {
  readonly #latency: ReadLatency;

  constructor(latency: ReadLatency) {
    super({ name: latency.name, help: latency.help, registers: [] });
    this.#latency = latency;
  }

  /** What the text format is made of; the library's own `get` ends here too. */
  async getForPromString(): Promise<RenderedHistogram> {
    const { name, help, labels, unitMs, counters } = this.#latency;
    const { latencyCounts, latencySumMs } = counters;
    const values: MetricValueWithName<string>[] = [];
    let count = 0;
    latencyCounts.forEach((inBucket, i) => {
      count += inBucket;
      const boundMs = latencyBoundsMs[i];
      const le = boundMs === undefined ? "+Inf" : boundMs / unitMs;
      values.push({ metricName: `${name}_bucket`, labels: { ...labels, le }, value: count });
    });
    values.push({ metricName: `${name}_sum`, labels, value: latencySumMs / unitMs });
    values.push({ metricName: `${name}_count`, labels, value: count });
    return { name, help, type: "histogram", aggregator: "sum", values };
  }
}

/** Adds a histogram of decision times. */
export function addLatency(registry: Registry, latency: ReadLatency): void {
  registry.registerMetric(new LatencyHistogram(latency));
}

/** A histogram with counts by bucket and how to read it: `add` is called for each series. */
export interface ReadHistogram {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
  /** What one is in the series, in the unit of the counts: 1,000 for seconds of milliseconds. */
  readonly unit: number;
  readonly read: (add: (buckets: BucketCounts, labels: Labels) => void) => void;
}

/** Counts by bucket. */
export interface BucketCounts {
  /** Upper bounds, ascending; there is one more bucket, above the last. */
  readonly bounds: readonly number[];
  readonly counts: readonly number[];
  readonly sum: number;
}

/** Shows counts by bucket that are kept elsewhere. */
class BucketHistogram extends Histogram {
  readonly #histogram: ReadHistogram;

  constructor(histogram: ReadHistogram) {
    const { name, help, labelNames } = histogram;
    super({ name, help, labelNames: [...labelNames], registers: [] });
    this.#histogram = histogram;
  }

  /** What the text format is made of. */
  async getForPromString(): Promise<RenderedHistogram> {
    const { name, help, unit, read } = this.#histogram;
    const values: MetricValueWithName<string>[] = [];
    read(({ bounds, counts, sum }, labels) => {
      let count = 0;
      counts.forEach((inBucket, i) => {
        count += inBucket;
        const bound = bounds[i];
        const le = bound === undefined ? "+Inf" : bound / unit;
        values.push({ metricName: `${name}_bucket`, labels: { ...labels, le }, value: count });
      });
      values.push({ metricName: `${name}_sum`, labels, value: sum / unit });
      values.push({ metricName: `${name}_count`, labels, value: count });
    });
    return { name, help, type: "histogram", aggregator: "sum", values };
  }
}

/** Adds a histogram whose buckets are counted elsewhere. */
export function addHistogram(registry: Registry, histogram: ReadHistogram): void {
  registry.registerMetric(new BucketHistogram(histogram));
}

/** Metrics by kind, with the labels that all of them carry. */
export interface MetricSetParts {
  readonly counters: readonly ReadMetric[];
  readonly gauges: readonly ReadMetric[];
  readonly histograms: readonly ReadLatency[];
  readonly labels: Labels;
}

/** Metrics in a registry of their own, as text. */
export function createMetricSet({ counters, gauges, histograms, labels }: MetricSetParts): {
  readonly contentType: string;
  render(): Promise<string>;
} {
  const registry = new Registry();
  registry.setDefaultLabels(labels);
  for (const metric of counters) addCounter(registry, metric);
  for (const metric of gauges) addGauge(registry, metric);
  for (const latency of histograms) addLatency(registry, latency);
  return { contentType: registry.contentType, render: () => registry.metrics() };
}
