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

/** Adds the value of one series. */
export type AddSeries = (value: number, labels?: Labels) => void;

/** A metric and how to read it. `add` is called once for each series. */
export interface ReadMetric {
  readonly name: string;
  readonly help: string;
  /** Absent if there is one series without labels. */
  readonly labelNames?: readonly string[];
  readonly read: (add: AddSeries) => void;
}

/** Reads one series for each entry. The name of the entry is the value of the label. */
export function byLabel(
  label: string,
  entries: () => Iterable<readonly [name: string, value: number]>,
): Pick<ReadMetric, "labelNames" | "read"> {
  const read = (add: AddSeries): void => {
    for (const [name, value] of entries()) add(value, { [label]: name });
  };
  return { labelNames: [label], read };
}

/** A histogram with counts by bucket and how to read it. `add` is called for each series. */
export interface ReadHistogram {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
  /** Divisor from the counts' unit to that of the series: 1,000 for milliseconds to seconds. */
  readonly unit: number;
  readonly read: (add: (buckets: BucketCounts, labels: Labels) => void) => void;
}

interface BucketCounts {
  /** Upper bounds, ascending. There is one more bucket above the last bound. */
  readonly bounds: readonly number[];
  readonly counts: readonly number[];
  readonly sum: number;
  /** An example of what each bucket counted, if there is one. Default: none. */
  readonly exemplars?: readonly (Exemplar | undefined)[];
}

/** One observation that a bucket counted, and the trace with its details. */
export interface Exemplar {
  /** In lower-case hexadecimal. */
  readonly traceId: string;
  readonly spanId: string;
  /** In the unit of the bucket's counts. For a sample: in the unit of the series. */
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

/** Metrics in a text format. Values are read when they are scraped. */
export interface RenderedMetrics {
  readonly contentType: string;
  /** Renders all metrics as they are now. */
  render(): Promise<string>;
}

/** A metric with all its series as they are now. */
export interface MetricFamily {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly samples: readonly SeriesSample[];
}

/** A value of a series. A histogram has several, with the names of Prometheus' text format. */
export interface SeriesSample {
  /** The family's name. For a histogram, plus `_bucket` (with label `le`), `_sum` or `_count`. */
  readonly name: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  readonly exemplar?: Exemplar;
}

/** Metrics that each part of the program adds to, in the text format of Prometheus. */
export interface Metrics extends RenderedMetrics {
  add(...groups: readonly MetricGroup[]): void;
  /** Yields all metrics, each with its current value. Between two, the event loop has a turn. */
  families(): AsyncIterable<MetricFamily>;
}

/** Creates an empty set of metrics. Each metric will have `labels`. */
export function createMetrics(labels: Labels = {}): Metrics {
  const registry = new Registry();
  registry.setDefaultLabels(labels);
  return metricsOf(registry, labels);
}

/**
 * Creates metrics of this process, with those of memory, CPU, event loop and garbage collection.
 *
 * @param loopDelay in place of those of the library, whose timer wakes an idle process 100 times a
 *   second. Default: those of the library
 */
export function createProcessMetrics(loopDelay?: MetricGroup): Metrics {
  const registry = new Registry();
  // Precision of a timer that never fires.
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

/** A value as the library returns it, with the additions of this file's own histogram. */
type GivenValue = MetricValueWithName<string> & {
  readonly sharedLabels?: Labels;
  readonly ownExemplar?: Exemplar;
};

/** Reads one metric at a time, so that calls wait for at most one, however many there are. */
async function* familiesOf(registry: Registry, common: Labels): AsyncGenerator<MetricFamily> {
  for (const { name } of registry.getMetricsAsArray()) {
    const metric = registry.getSingleMetric(name);
    if (metric === undefined) continue;
    const { help, type: givenType, values } = await metric.get();
    // The library's types say that it is a number, but it is a string.
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

/** Adds a counter or gauge whose values are read anew for each scrape. */
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

/** A histogram in the library's rendered form. */
interface RenderedHistogram {
  readonly name: string;
  readonly help: string;
  readonly type: "histogram";
  readonly aggregator: "sum";
  readonly values: GivenValue[];
}

/** Shows counts by bucket that are stored elsewhere. */
class BucketHistogram extends Histogram {
  readonly #histogram: ReadHistogram;

  constructor(histogram: ReadHistogram) {
    const { name, help, labelNames } = histogram;
    super({ name, help, labelNames: [...labelNames], registers: [] });
    this.#histogram = histogram;
  }

  /** Returns the values for the text format. The library's own `get` calls this, too. */
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
