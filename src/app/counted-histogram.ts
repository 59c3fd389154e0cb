import { Histogram, type MetricValueWithName } from "prom-client";
import { type DecisionCounters, latencyBoundsMs } from "../decide/counters.js";

/** A histogram as the library writes it. */
interface RenderedHistogram {
  readonly name: string;
  readonly help: string;
  readonly type: "histogram";
  readonly aggregator: "sum";
  readonly values: MetricValueWithName<string>[];
}

/** Shows counts that are kept elsewhere as a histogram of seconds; registered by whoever makes it. */
export class CountedHistogram extends Histogram {
  readonly #counters: DecisionCounters;
  readonly #name: string;
  readonly #help: string;

  constructor(parts: {
    readonly name: string;
    readonly help: string;
    readonly counters: DecisionCounters;
  }) {
    super({ name: parts.name, help: parts.help, registers: [] });
    this.#counters = parts.counters;
    this.#name = parts.name;
    this.#help = parts.help;
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
      values.push({ metricName: `${this.#name}_bucket`, labels: { le }, value: count });
    });
    values.push({ metricName: `${this.#name}_sum`, labels: {}, value: latencySumMs / 1_000 });
    values.push({ metricName: `${this.#name}_count`, labels: {}, value: count });
    return { name: this.#name, help: this.#help, type: "histogram", aggregator: "sum", values };
  }
}
