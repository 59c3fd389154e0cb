import { choiceOption, decimalOption, optionalSwitchOption, optionalTextOption } from "./option.js";

/** Traces by OpenTelemetry; where they go, its own names say (`OTEL_EXPORTER_OTLP_...`). */
export const tracingOptionRows = {
  tracingEnabled: optionalSwitchOption({
    env: "TRACING_ENABLED",
    docs:
      "Sends a span a decision to an OpenTelemetry collector. Unset, it is on where " +
      "`OTEL_EXPORTER_OTLP_ENDPOINT` or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` is set.",
  }),
  tracingServiceName: optionalTextOption({
    env: "TRACING_SERVICE_NAME",
    valueName: "NAME",
    docs: "The service that spans belong to. Unset: `OTEL_SERVICE_NAME`, or `RateLimit`.",
  }),
  tracingServiceNamespace: optionalTextOption({
    env: "TRACING_SERVICE_NAMESPACE",
    valueName: "NAME",
    docs: "The namespace of that service.",
  }),
  tracingServiceInstanceId: optionalTextOption({
    env: "TRACING_SERVICE_INSTANCE_ID",
    valueName: "NAME",
    docs: "What tells this replica from others, for example the pod's name. Unset: random.",
  }),
  tracingProtocol: choiceOption<"auto" | "http" | "grpc">({
    env: "TRACING_EXPORTER_PROTOCOL",
    choices: ["auto", "http", "grpc"],
    defaultValue: "auto",
    docs:
      "How the collector is reached: `http` (as JSON) or `grpc`; `auto` is `grpc` where " +
      "`OTEL_EXPORTER_OTLP_PROTOCOL` says so, else `http`.",
  }),
  tracingSamplingRatio: decimalOption({
    env: "TRACING_SAMPLING_RATE",
    range: [0, 1],
    defaultValue: 1,
    docs:
      "The part of decisions that become spans where the caller does not say: with a trace of " +
      "the caller's (W3C or B3), its own choice holds. `OTEL_TRACES_SAMPLER` wins over this.",
  }),
} as const;
