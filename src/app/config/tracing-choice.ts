import type { OptionValues } from "../options/options.js";
import type { tracingOptionRows } from "../options/tracing-options.js";

/** How decisions are traced. */
export interface TracingChoice {
  readonly protocol: "http" | "grpc";
  readonly serviceName: string;
  readonly serviceNamespace?: string;
  /** Random where it is absent. */
  readonly serviceInstanceId?: string;
  /** 0 to 1; undefined where the standard variables choose what is recorded. */
  readonly samplingRatio: number | undefined;
}

/** The options that become a `TracingChoice`. */
export type TracingValues = Pick<OptionValues, keyof typeof tracingOptionRows>;

/** What options and standard variables say together; undefined where nothing is traced. */
export function chooseTracing(
  values: TracingValues,
  env: Readonly<Record<string, string | undefined>>,
): TracingChoice | undefined {
  const isOff =
    env["OTEL_SDK_DISABLED"]?.toLowerCase() === "true" || env["OTEL_TRACES_EXPORTER"] === "none";
  const endpoint = env["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] || env["OTEL_EXPORTER_OTLP_ENDPOINT"];
  if (!(values.tracingEnabled ?? (Boolean(endpoint) && !isOff))) return undefined;
  const standard = env["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"] || env["OTEL_EXPORTER_OTLP_PROTOCOL"];
  const { tracingProtocol, tracingServiceNamespace: serviceNamespace } = values;
  const { tracingServiceInstanceId: serviceInstanceId } = values;
  return {
    protocol:
      tracingProtocol === "auto" ? (standard === "grpc" ? "grpc" : "http") : tracingProtocol,
    serviceName: values.tracingServiceName ?? (env["OTEL_SERVICE_NAME"] || "RateLimit"),
    ...(serviceNamespace === undefined ? {} : { serviceNamespace }),
    ...(serviceInstanceId === undefined ? {} : { serviceInstanceId }),
    samplingRatio: env["OTEL_TRACES_SAMPLER"] ? undefined : values.tracingSamplingRatio,
  };
}
