import { libraryMetrics } from "../../../src/client/metrics/library-metrics.js";
import { code, paragraphs, type ReferencePage, table } from "./markdown.js";

/** The metrics of the library for other programs. */
export function libraryMetricsPage(): ReferencePage {
  const rows = libraryMetrics.map(({ name, kind, labelNames, help }) => [
    code(name),
    kind,
    ["admission", ...labelNames].map(code).join(", "),
    help,
  ]);
  return {
    path: "library-metrics.md",
    title: "Metrics of the library",
    purpose: "This page lists the metrics of `headgate/client` and `headgate/server`.",
    body: paragraphs(
      "`addMetrics` of `headgate/metrics/prometheus` adds them to a registry of prom-client; " +
        "`observeMetrics` of `headgate/metrics/opentelemetry` adds them to a meter of " +
        "OpenTelemetry, without `_total` at the end of a name. The label `admission` is the name " +
        "of what is measured. All other values come from closed sets.",
      table(["metric", "type", "labels", "what it says"], rows),
    ),
  };
}
