import { choiceOption, decimalOption, optionalSwitchOption, optionalTextOption } from "./option.js";

const section = "Tracing" as const;

/** Traces by OpenTelemetry; where they go, its own names say (`OTEL_EXPORTER_OTLP_...`). */
export const tracingOptionRows = {
  tracingEnabled: optionalSwitchOption({
    section,
    env: "TRACING_ENABLED",
    flag: "tracing-enabled",
    docs:
      "Sends a span for each decision to an OpenTelemetry collector. Default: on " +
      "if `OTEL_EXPORTER_OTLP_ENDPOINT` or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` is " +
      "set.",
  }),
  tracingServiceName: optionalTextOption({
    section,
    env: "TRACING_SERVICE_NAME",
    flag: "tracing-service-name",
    valueName: "NAME",
    docs: "The service name of the spans. Default: `OTEL_SERVICE_NAME`, or `RateLimit`.",
  }),
  tracingServiceNamespace: optionalTextOption({
    section,
    env: "TRACING_SERVICE_NAMESPACE",
    flag: "tracing-service-namespace",
    valueName: "NAME",
    docs: "The service namespace of the spans.",
  }),
  tracingServiceInstanceId: optionalTextOption({
    section,
    env: "TRACING_SERVICE_INSTANCE_ID",
    flag: "tracing-service-instance-id",
    valueName: "NAME",
    docs: "The instance id of this replica, for example the name of the pod. Default: random.",
  }),
  tracingProtocol: choiceOption<"auto" | "http" | "grpc">({
    section,
    env: "TRACING_EXPORTER_PROTOCOL",
    flag: "tracing-exporter-protocol",
    choices: ["auto", "http", "grpc"],
    defaultValue: "auto",
    docs:
      "The protocol to the collector: `http` (as JSON) or `grpc`. `auto` is `grpc` " +
      "if `OTEL_EXPORTER_OTLP_PROTOCOL` says so, otherwise `http`.",
  }),
  tracingSamplingRatio: decimalOption({
    section,
    env: "TRACING_SAMPLING_RATE",
    flag: "tracing-sampling-rate",
    min: 0,
    max: 1,
    defaultValue: 1,
    docs:
      "The ratio of decisions that become spans, if the caller sends no trace. " +
      "With a trace of the caller (W3C or B3), its sampling decision applies. " +
      "`OTEL_TRACES_SAMPLER` takes precedence.",
  }),
} as const;
