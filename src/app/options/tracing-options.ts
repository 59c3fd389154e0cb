import { choiceOption, decimalOption, optionalSwitchOption, optionalTextOption } from "./option.js";

/** Traces by OpenTelemetry. Its standard names set the destination (`OTEL_EXPORTER_OTLP_...`). */
export const tracingOptionRows = {
  tracingEnabled: optionalSwitchOption({
    env: "TRACING_ENABLED",
    docs:
      "Sends a span for each decision to an OpenTelemetry collector. Default: on " +
      "if `OTEL_EXPORTER_OTLP_ENDPOINT` or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` is " +
      "set.",
  }),
  tracingServiceName: optionalTextOption({
    env: "TRACING_SERVICE_NAME",
    valueName: "NAME",
    docs:
      "The service name of spans, and of metrics and logs that are sent. Default: " +
      "`OTEL_SERVICE_NAME`, or `RateLimit`.",
  }),
  tracingServiceNamespace: optionalTextOption({
    env: "TRACING_SERVICE_NAMESPACE",
    valueName: "NAME",
    docs: "The service namespace of the same messages.",
  }),
  tracingServiceInstanceId: optionalTextOption({
    env: "TRACING_SERVICE_INSTANCE_ID",
    valueName: "NAME",
    docs: "The instance id of this replica, for example the name of the pod. Default: random.",
  }),
  tracingProtocol: choiceOption<"auto" | "http" | "grpc">({
    env: "TRACING_EXPORTER_PROTOCOL",
    choices: ["auto", "http", "grpc"],
    defaultValue: "auto",
    docs:
      "The protocol to the collector: `http` (as JSON) or `grpc`. `auto` is `grpc` " +
      "if `OTEL_EXPORTER_OTLP_PROTOCOL` says so, otherwise `http`.",
  }),
  tracingSamplingRatio: decimalOption({
    env: "TRACING_SAMPLING_RATE",
    range: [0, 1],
    defaultValue: 1,
    docs:
      "The ratio of decisions that become spans, if the caller sends no trace. " +
      "With a trace of the caller (W3C or B3), its sampling decision applies. " +
      "`OTEL_TRACES_SAMPLER` takes precedence.",
  }),
} as const;
