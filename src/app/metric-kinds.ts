import { Counter, Gauge, Histogram, type MetricValueWithName, type Registry } from "prom-client";
import { type DecisionCounters, latencyBoundsMs } from "../decide/counters.js";

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

const latencyName = "headgate_decision_duration_seconds";
const latencyHelp = "How long decisions took, without the transport.";

/** Shows the latency counts, which are kept in milliseconds, as a histogram of seconds. */
export class LatencyHistogram extends Histogram {
  readonly #counters: DecisionCounters;

  constructor(counters: DecisionCounters) {
    super({ name: latencyName, help: latencyHelp, registers: [] });
    this.#counters = counters;
  }

  /** What the text format is made of; the library's own `get` ends here too. */
  async getForPromString(): Promise<RenderedHistogram> {
    const { latencyCounts, latencySumMs } = this.#counters;
    const values: MetricValueWithName<string>[] = [];
    let count = 0;
    latencyCounts.forEach((inBucket, i) => {
      count += inBucket;
      const boundMs = latencyBoundsMs[i];
      const le = boundMs === undefined ? "+Inf" : boundMs / 1_000;
      values.push({ metricName: `${latencyName}_bucket`, labels: { le }, value: count });
    });
    values.push({ metricName: `${latencyName}_sum`, labels: {}, value: latencySumMs / 1_000 });
    values.push({ metricName: `${latencyName}_count`, labels: {}, value: count });
    return { name: latencyName, help: latencyHelp, type: "histogram", aggregator: "sum", values };
  }
}
