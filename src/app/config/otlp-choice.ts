import type { OptionValues } from "../options/options.js";
import type { otlpOptionRows } from "../options/otlp-options.js";
import {
  identify,
  isSdkDisabled,
  type ServiceIdentity,
  type TracingValues,
} from "./tracing-choice.js";

/** Encoding and transport of OTLP messages. Source: OpenTelemetry, "OTLP Exporter". */
export type OtlpProtocol = "http/protobuf" | "http/json" | "grpc";

/** Signals that are sent to OpenTelemetry collectors, besides traces. */
export interface OtlpChoice {
  readonly service: ServiceIdentity;
  /** Absent: metrics are only scraped. */
  readonly metrics?: { readonly protocol: OtlpProtocol; readonly intervalMs: number };
  /** Absent: log lines are only written. */
  readonly logs?: { readonly protocol: OtlpProtocol };
}

/** The options that become an `OtlpChoice`. */
export type OtlpValues = Pick<OptionValues, keyof typeof otlpOptionRows>;

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Combines options and standard variables. A generic endpoint alone starts neither metrics nor
 * logs: it means traces, and an upgrade must not send a collector data that was not asked for.
 */
export function chooseOtlp(
  values: OtlpValues & TracingValues,
  env: Environment,
  problems: string[],
): OtlpChoice | undefined {
  if (isSdkDisabled(env)) return undefined;
  const metrics = chooseSignal({ signal: "METRICS", exporters: values.metricsExporter, env });
  const logs = chooseSignal({ signal: "LOGS", exporters: values.logsExporter, env });
  problems.push(...(metrics?.problems ?? []), ...(logs?.problems ?? []));
  if (metrics === undefined && logs === undefined) return undefined;
  const { metricsIntervalMs: intervalMs } = values;
  return {
    service: identify(values, env),
    ...(metrics === undefined ? {} : { metrics: { protocol: metrics.protocol, intervalMs } }),
    ...(logs === undefined ? {} : { logs: { protocol: logs.protocol } }),
  };
}

interface ChosenSignal {
  readonly protocol: OtlpProtocol;
  readonly problems: readonly string[];
}

/** Returns undefined if the signal is not sent. */
function chooseSignal({
  signal,
  exporters,
  env,
}: {
  readonly signal: "METRICS" | "LOGS";
  readonly exporters: string | undefined;
  readonly env: Environment;
}): ChosenSignal | undefined {
  const ownName = `OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`;
  const isOn =
    exporters === undefined
      ? Boolean(env[ownName])
      : exporters.split(",").some((name) => name.trim() === "otlp");
  if (!isOn) return undefined;
  const protocol = protocolOf(
    env[`OTEL_EXPORTER_OTLP_${signal}_PROTOCOL`] || env["OTEL_EXPORTER_OTLP_PROTOCOL"],
  );
  const endpointName = env[ownName] ? ownName : "OTEL_EXPORTER_OTLP_ENDPOINT";
  const endpoint = env[endpointName];
  // The SDK would treat an invalid endpoint as unset, and send to this machine.
  const isRight = !endpoint || protocol === "grpc" || isHttpUrl(endpoint);
  return {
    protocol,
    problems: isRight ? [] : [`${endpointName} must be a URL such as http://collector:4318`],
  };
}

function isHttpUrl(text: string): boolean {
  return /^https?:/i.test(text) && URL.canParse(text);
}

/** Reads the protocol. Any other word means the standard's default. */
function protocolOf(word: string | undefined): OtlpProtocol {
  return word === "grpc" || word === "http/json" ? word : "http/protobuf";
}
