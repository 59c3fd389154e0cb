import { choiceOption, decimalOption, optionalSwitchOption, optionalTextOption } from "./option.js";

const section = "Tracing" as const;

/** Traces by OpenTelemetry; where they go, its own names say (`OTEL_EXPORTER_OTLP_...`). */
export const tracingOptionRows = {
  tracingEnabled: optionalSwitchOption({
    section,
    env: "TRACING_ENABLED",
    flag: "tracing-enabled",
    docs:
      "Sends a span a decision to an OpenTelemetry collector. Unset, it is on where " +
      "`OTEL_EXPORTER_OTLP_ENDPOINT` or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` is set.",
  }),
  tracingServiceName: optionalTextOption({
    section,
    env: "TRACING_SERVICE_NAME",
    flag: "tracing-service-name",
    valueName: "NAME",
    docs: "The service that spans belong to. Unset: `OTEL_SERVICE_NAME`, or `RateLimit`.",
  }),
  tracingServiceNamespace: optionalTextOption({
    section,
    env: "TRACING_SERVICE_NAMESPACE",
    flag: "tracing-service-namespace",
    valueName: "NAME",
    docs: "The namespace of that service.",
  }),
  tracingServiceInstanceId: optionalTextOption({
    section,
    env: "TRACING_SERVICE_INSTANCE_ID",
    flag: "tracing-service-instance-id",
    valueName: "NAME",
    docs: "What tells this replica from others, for example the pod's name. Unset: random.",
  }),
  tracingProtocol: choiceOption<"auto" | "http" | "grpc">({
    section,
    env: "TRACING_EXPORTER_PROTOCOL",
    flag: "tracing-exporter-protocol",
    choices: ["auto", "http", "grpc"],
    defaultValue: "auto",
    docs:
      "How the collector is reached: `http` (as JSON) or `grpc`; `auto` is `grpc` where " +
      "`OTEL_EXPORTER_OTLP_PROTOCOL` says so, else `http`.",
  }),
  tracingSamplingRatio: decimalOption({
    section,
    env: "TRACING_SAMPLING_RATE",
    flag: "tracing-sampling-rate",
    min: 0,
    max: 1,
    defaultValue: 1,
    docs:
      "The part of decisions that become spans where the caller does not say: with a trace of " +
      "the caller's (W3C or B3), its own choice holds. `OTEL_TRACES_SAMPLER` wins over this.",
  }),
} as const;
