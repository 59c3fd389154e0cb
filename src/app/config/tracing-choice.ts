import type { OptionValues } from "../options/options.js";
import type { tracingOptionRows } from "../options/tracing-options.js";

/** Identity of this process in traces, and in exported metrics and logs. */
export interface ServiceIdentity {
  readonly serviceName: string;
  readonly serviceNamespace?: string;
  /** Absent: the replica's identifier in the fleet. */
  readonly serviceInstanceId?: string;
}

/** Settings of the tracing of decisions. */
export interface TracingChoice extends ServiceIdentity {
  readonly protocol: "http" | "grpc";
  /** 0 to 1. Undefined if the standard variables choose what is recorded. */
  readonly samplingRatio: number | undefined;
}

/** The options that become a `TracingChoice`. */
export type TracingValues = Pick<OptionValues, keyof typeof tracingOptionRows>;

type Environment = Readonly<Record<string, string | undefined>>;

/** Combines options and standard variables. Undefined if nothing is traced. */
export function chooseTracing(values: TracingValues, env: Environment): TracingChoice | undefined {
  const isOff = isSdkDisabled(env) || env["OTEL_TRACES_EXPORTER"] === "none";
  const endpoint = env["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] || env["OTEL_EXPORTER_OTLP_ENDPOINT"];
  if (!(values.tracingEnabled ?? (Boolean(endpoint) && !isOff))) return undefined;
  const standard = env["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"] || env["OTEL_EXPORTER_OTLP_PROTOCOL"];
  const { tracingProtocol } = values;
  return {
    protocol:
      tracingProtocol === "auto" ? (standard === "grpc" ? "grpc" : "http") : tracingProtocol,
    ...identify(values, env),
    samplingRatio: env["OTEL_TRACES_SAMPLER"] ? undefined : values.tracingSamplingRatio,
  };
}

/** Reports whether OpenTelemetry is off unless one of Headgate's own options turns it on. */
export function isSdkDisabled(env: Environment): boolean {
  return env["OTEL_SDK_DISABLED"]?.toLowerCase() === "true";
}

/** Returns the identity of this process from options and standard variables. */
export function identify(values: TracingValues, env: Environment): ServiceIdentity {
  const { tracingServiceNamespace: serviceNamespace } = values;
  const { tracingServiceInstanceId: serviceInstanceId } = values;
  return {
    serviceName: values.tracingServiceName ?? (env["OTEL_SERVICE_NAME"] || "RateLimit"),
    ...(serviceNamespace === undefined ? {} : { serviceNamespace }),
    ...(serviceInstanceId === undefined ? {} : { serviceInstanceId }),
  };
}
