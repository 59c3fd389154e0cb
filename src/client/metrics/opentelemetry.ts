import type { Meter, ObservableResult } from "@opentelemetry/api";
import { checkMeasured, libraryMetrics, type MeasuredParts } from "./library-metrics.js";

export type { MeasuredParts } from "./library-metrics.js";

/**
 * Adds the library's metrics to an OpenTelemetry meter, under their Prometheus names without
 * `_total`, which its exporter adds. Values are read at each collection. A limit of `Infinity`,
 * which means no limit, has no data point.
 *
 * @returns a function that ends the observation
 * @throws RangeError if two admissions have the same name
 */
export function observeMetrics(meter: Meter, measured: MeasuredParts): () => void {
  checkMeasured(measured);
  const ends = libraryMetrics.map(({ name, help: description, kind, read }) => {
    const instrument =
      kind === "counter"
        ? meter.createObservableCounter(name.replace(/_total$/, ""), { description })
        : meter.createObservableGauge(name, { description });
    const observe = (result: ObservableResult): void => {
      for (const [admission, [value, labels]] of read(measured)) {
        if (Number.isFinite(value)) result.observe(value, { admission, ...labels });
      }
    };
    instrument.addCallback(observe);
    return () => instrument.removeCallback(observe);
  });
  return () => {
    for (const end of ends) end();
  };
}
