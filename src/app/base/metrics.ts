import {
  Counter,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  type MetricValueWithName,
  Registry,
} from "prom-client";
import { timerMsMax } from "../../host/clock.js";

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
  /** An example of what each bucket counted, where there is one. Default: none. */
  readonly exemplars?: readonly (Exemplar | undefined)[];
}

/** One observation that a bucket counted, and the trace that tells more of it. */
export interface Exemplar {
  /** In lower-case hexadecimal. */
  readonly traceId: string;
  readonly spanId: string;
  /** In the unit of the bucket's counts; of a sample: in the unit of the series. */
  readonly value: number;
  /** Milliseconds since 1970. */
  readonly epochMs: number;
}

/** Metrics of one part of the program, by kind. */
export interface MetricGroup {
  readonly counters?: readonly ReadMetric[];
  readonly gauges?: readonly ReadMetric[];
  readonly histograms?: readonly ReadHistogram[];
}

/** Metrics in a text format; what is counted is read when they are scraped. */
export interface RenderedMetrics {
  readonly contentType: string;
  /** All metrics as they are now. */
  render(): Promise<string>;
}

/** A metric with all its series as they are now. */
export interface MetricFamily {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly samples: readonly SeriesSample[];
}

/** A number of a series; a histogram has several, under the names of Prometheus' text format. */
export interface SeriesSample {
  /** The family's; of a histogram followed by `_bucket` (with the label `le`), `_sum`, `_count`. */
  readonly name: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  readonly exemplar?: Exemplar;
}

/** Metrics to which each part of the program adds its own, in the text format of Prometheus. */
export interface Metrics extends RenderedMetrics {
  add(...groups: readonly MetricGroup[]): void;
  /** All metrics, each as it is when its turn comes; between two, the event loop has a turn. */
  families(): AsyncIterable<MetricFamily>;
}

/** No metrics yet; `labels` will be on each of them. */
export function createMetrics(labels: Labels = {}): Metrics {
  const registry = new Registry();
  registry.setDefaultLabels(labels);
  return metricsOf(registry, labels);
}

/**
 * Metrics of this process: memory, CPU, event loop and garbage collection are there already.
 *
 * @param loopDelay in place of those of the library, whose timer wakes an idle process 100 times a
 *   second. Default: those of the library
 */
export function createProcessMetrics(loopDelay?: MetricGroup): Metrics {
  const registry = new Registry();
  // Of a timer that never fires.
  const eventLoopMonitoringPrecision = loopDelay === undefined ? 10 : timerMsMax;
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision });
  for (const { name } of loopDelay?.gauges ?? []) registry.removeSingleMetric(name);
  const metrics = metricsOf(registry);
  if (loopDelay !== undefined) metrics.add(loopDelay);
  return metrics;
}

function metricsOf(registry: Registry, labels: Labels = {}): Metrics {
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
    families: () => familiesOf(registry, labels),
  };
}

const familyTypes: ReadonlyMap<string, MetricFamily["type"]> = new Map([
  ["counter", "counter"],
  ["gauge", "gauge"],
  ["histogram", "histogram"],
]);

/** A value as the library gives it, and what this file's own histogram adds to it. */
type GivenValue = MetricValueWithName<string> & {
  readonly sharedLabels?: Labels;
  readonly ownExemplar?: Exemplar;
};

/** Reads a metric at a time: what calls wait for is one of them, however many there are. */
async function* familiesOf(registry: Registry, common: Labels): AsyncGenerator<MetricFamily> {
  for (const { name } of registry.getMetricsAsArray()) {
    const metric = registry.getSingleMetric(name);
    if (metric === undefined) continue;
    const { help, type: givenType, values } = await metric.get();
    // The library's types say a number, and it gives a word.
    const type = familyTypes.get(String(givenType));
    if (type === undefined) continue;
    const samples = values.map((given: GivenValue): SeriesSample => {
      const { metricName = name, value, ownExemplar: exemplar } = given;
      const labels: Record<string, string | number> = { ...common };
      for (const [label, own] of Object.entries(given.labels)) {
        if (own !== undefined) labels[label] = own;
      }
      return { name: metricName, labels, value, ...(exemplar === undefined ? {} : { exemplar }) };
    });
    yield { name, help, type, samples };
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
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
  readonly values: GivenValue[];
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
    const values: GivenValue[] = [];
    // The library's `get` reads them in each value.
    const sharedLabels: Labels = {};
    read(({ bounds, counts, sum, exemplars = [] }, labels) => {
      let count = 0;
      counts.forEach((inBucket, i) => {
        count += inBucket;
        const bound = bounds[i];
        const le = bound === undefined ? "+Inf" : bound / unit;
        const one = exemplars[i];
        const ownExemplar = one && { ...one, value: one.value / unit };
        values.push({
          metricName: `${name}_bucket`,
          labels: { ...labels, le },
          sharedLabels,
          value: count,
          ...(ownExemplar === undefined ? {} : { ownExemplar }),
        });
      });
      values.push({ metricName: `${name}_sum`, labels, sharedLabels, value: sum / unit });
      values.push({ metricName: `${name}_count`, labels, sharedLabels, value: count });
    });
    return { name, help, type: "histogram", aggregator: "sum", values };
  }
}
