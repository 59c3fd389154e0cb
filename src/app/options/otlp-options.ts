import { type OptionRow, optionalTextOption, wholeNumberOption } from "./option.js";

const intervalRow = wholeNumberOption({
  env: "OTEL_METRIC_EXPORT_INTERVAL",
  range: [100, 3_600_000],
  defaultValue: 60_000,
  docs: "The time between two pushes of metrics, in milliseconds.",
});

/**
 * Metrics and logs by OpenTelemetry, with its standard names. Other standard names, which the SDK
 * reads, set their destination: `OTEL_EXPORTER_OTLP_METRICS_ENDPOINT` and so on.
 */
export const otlpOptionRows = {
  metricsExporter: optionalTextOption({
    env: "OTEL_METRICS_EXPORTER",
    valueName: "NAMES",
    docs:
      "If it contains `otlp`, Headgate also pushes its metrics to an OpenTelemetry collector. " +
      "Other names change nothing: `/metrics` is always served. Default: `otlp` if " +
      "`OTEL_EXPORTER_OTLP_METRICS_ENDPOINT` is set. `OTEL_EXPORTER_OTLP_ENDPOINT` alone does " +
      "not start it.",
  }),
  // An empty value counts as unset in OpenTelemetry.
  metricsIntervalMs: {
    ...intervalRow,
    parse: (text) => intervalRow.parse(text === "" ? String(intervalRow.defaultValue) : text),
  } satisfies OptionRow<number>,
  logsExporter: optionalTextOption({
    env: "OTEL_LOGS_EXPORTER",
    valueName: "NAMES",
    docs:
      "If it contains `otlp`, Headgate also sends its log lines to an OpenTelemetry collector. " +
      "Default: `otlp` if `OTEL_EXPORTER_OTLP_LOGS_ENDPOINT` is set.",
  }),
} as const;
