import {
  Counter,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  type MetricValueWithName,
  Registry,
} from "prom-client";

/** The labels of a series. */
export type Labels = Readonly<Record<string, string>>;

/** Takes the value of one series. */
export type AddSeries = (value: number, labels?: Labels) => void;

/** A metric and how to read it: `add` is called once for each of its series. */
export interface ReadMetric {
  readonly name: string;
  readonly help: string;
  /** Absent where there is one series without labels. */
  readonly labelNames?: readonly string[];
  readonly read: (add: AddSeries) => void;
}

/** Reads a series for each entry, whose name is its label's. */
export function byLabel(
  label: string,
  entries: () => Iterable<readonly [name: string, value: number]>,
): Pick<ReadMetric, "labelNames" | "read"> {
  const read = (add: AddSeries): void => {
    for (const [name, value] of entries()) add(value, { [label]: name });
  };
  return { labelNames: [label], read };
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

interface BucketCounts {
  /** Upper bounds, ascending; there is one more bucket, above the last. */
  readonly bounds: readonly number[];
  readonly counts: readonly number[];
  readonly sum: number;
}

/** Metrics of one part of the program, by kind. */
export interface MetricGroup {
  readonly counters?: readonly ReadMetric[];
  readonly gauges?: readonly ReadMetric[];
  readonly histograms?: readonly ReadHistogram[];
}

/** Metrics in the text format of Prometheus; what is counted is read when they are scraped. */
export interface RenderedMetrics {
  readonly contentType: string;
  /** All metrics as they are now. */
  render(): Promise<string>;
}

/** Metrics to which each part of the program adds its own. */
export interface Metrics extends RenderedMetrics {
  add(...groups: readonly MetricGroup[]): void;
}

/** No metrics yet; `labels` will be on each of them. */
export function createMetrics(labels: Labels = {}): Metrics {
  const registry = new Registry();
  registry.setDefaultLabels(labels);
  return metricsOf(registry);
}

/** Metrics of this process: memory, CPU, event loop and garbage collection are there already. */
export function createProcessMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return metricsOf(registry);
}

function metricsOf(registry: Registry): Metrics {
  return {
    contentType: registry.contentType,
    add: (...groups) => {
      for (const { gauges = [], counters = [], histograms = [] } of groups) {
        for (const gauge of gauges) addRead(registry, Gauge, gauge);
        for (const counter of counters) addRead(registry, Counter, counter);
        for (const histogram of histograms) registry.registerMetric(new BucketHistogram(histogram));
      }
    },
    render: () => registry.metrics(),
  };
}

/** Adds what is read anew for each scrape: what only grows, or what is as it is now. */
function addRead(
  registry: Registry,
  Kind: typeof Counter | typeof Gauge,
  { name, help, labelNames = [], read }: ReadMetric,
): void {
  const metric = new Kind({
    name,
    help,
    labelNames: [...labelNames],
    registers: [registry],
    collect: () => {
      metric.reset();
      read((value, labels = {}) => metric.inc(labels, value));
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

/** Shows counts by bucket that are kept elsewhere. */
class BucketHistogram extends Histogram {
  readonly #histogram: ReadHistogram;

  constructor(histogram: ReadHistogram) {
    const { name, help, labelNames } = histogram;
    super({ name, help, labelNames: [...labelNames], registers: [] });
    this.#histogram = histogram;
  }

  /** What the text format is made of; the library's own `get` ends here too. */
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
