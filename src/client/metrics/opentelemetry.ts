import type { Meter, ObservableResult } from "@opentelemetry/api";
import { checkMeasured, libraryMetrics, type MeasuredParts } from "./library-metrics.js";

export type { MeasuredParts } from "./library-metrics.js";

/**
 * Adds the library's metrics to a meter of OpenTelemetry, under the names that they have in
 * Prometheus, without `_total`, which its exporter adds. What is counted is read at each
 * collection. A limit that is no number, because there is none, has no point.
 *
 * @returns ends it: nothing is observed any more
 * @throws RangeError where two admissions have one name
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
