import { Counter, Gauge, type Registry } from "prom-client";
import { checkMeasured, libraryMetrics, type MeasuredParts } from "./library-metrics.js";

export type { MeasuredParts } from "./library-metrics.js";

/**
 * Adds the library's metrics to a prom-client registry. Values are read at each scrape. Call it
 * once for each registry.
 *
 * @throws RangeError if two admissions have the same name; Error if a metric already exists
 */
export function addMetrics(registry: Registry, measured: MeasuredParts): void {
  checkMeasured(measured);
  for (const { name, help, kind, labelNames, read } of libraryMetrics) {
    const Kind = kind === "counter" ? Counter : Gauge;
    const metric = new Kind({
      name,
      help,
      labelNames: ["admission", ...labelNames],
      registers: [registry],
      collect: () => {
        metric.reset();
        for (const [admission, [value, labels]] of read(measured)) {
          metric.inc({ admission, ...labels }, value);
        }
      },
    });
  }
}
