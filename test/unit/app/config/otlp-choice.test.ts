import { describe, expect, it } from "vitest";
import { loadConfig } from "../../../../src/app/config/config.js";
import type { OtlpChoice } from "../../../../src/app/config/otlp-choice.js";

type Environment = Readonly<Record<string, string>>;

function otlpOf(env: Environment): OtlpChoice | undefined {
  const loaded = loadConfig({ flags: {}, env });
  if (loaded.kind === "problems") throw new Error(loaded.problems.join("\n"));
  return loaded.config.otlp;
}

const generic = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318" };
const metricsEndpoint = { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: "http://collector:4318/v1/metrics" };
const logsEndpoint = { OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: "http://collector:4318/v1/logs" };
const metrics = { protocol: "http/protobuf", intervalMs: 60_000 } as const;
const logs = { protocol: "http/protobuf" } as const;

describe("chooseOtlp()", () => {
  it.each<[Environment, Pick<OtlpChoice, "metrics" | "logs"> | undefined]>([
    [{}, undefined],
    // It has meant traces alone, and goes on to do so.
    [generic, undefined],
    [metricsEndpoint, { metrics }],
    [logsEndpoint, { logs }],
    [
      { ...metricsEndpoint, ...logsEndpoint },
      { metrics, logs },
    ],
    [{ ...generic, OTEL_METRICS_EXPORTER: "otlp" }, { metrics }],
    [{ OTEL_METRICS_EXPORTER: "prometheus, otlp" }, { metrics }],
    [{ ...metricsEndpoint, OTEL_METRICS_EXPORTER: "none" }, undefined],
    [{ ...metricsEndpoint, OTEL_METRICS_EXPORTER: "prometheus" }, undefined],
    [{ ...metricsEndpoint, OTEL_METRICS_EXPORTER: "" }, { metrics }],
    [{ OTEL_LOGS_EXPORTER: "otlp" }, { logs }],
    [{ ...logsEndpoint, OTEL_LOGS_EXPORTER: "none" }, undefined],
    [{ ...metricsEndpoint, ...logsEndpoint, OTEL_SDK_DISABLED: "TRUE" }, undefined],
  ])("with %j sends: %j", (env, expected) => {
    const chosen = otlpOf(env);
    expect(chosen).toEqual(expected && { service: { serviceName: "RateLimit" }, ...expected });
  });

  it.each([
    ["grpc", "grpc"],
    ["http/json", "http/json"],
    ["http/protobuf", "http/protobuf"],
    ["http/thrift", "http/protobuf"],
    ["", "http/protobuf"],
  ])("takes the protocol %s for %s, the signal's own before the other", (word, protocol) => {
    const env = { ...metricsEndpoint, OTEL_EXPORTER_OTLP_PROTOCOL: word };
    expect(otlpOf(env)?.metrics?.protocol).toBe(protocol);
    const own = { ...env, OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: "http/json" };
    expect(otlpOf(own)?.metrics?.protocol).toBe("http/json");
  });

  it("has the interval and the names of the process", () => {
    const env = {
      ...metricsEndpoint,
      OTEL_METRIC_EXPORT_INTERVAL: "5000",
      OTEL_SERVICE_NAME: "limits",
      TRACING_SERVICE_NAMESPACE: "edge",
      TRACING_SERVICE_INSTANCE_ID: "pod-7",
    };
    expect(otlpOf(env)).toEqual({
      service: {
        serviceName: "limits",
        serviceNamespace: "edge",
        serviceInstanceId: "pod-7",
      },
      metrics: { ...metrics, intervalMs: 5_000 },
    });
    const unset = { ...metricsEndpoint, OTEL_METRIC_EXPORT_INTERVAL: "" };
    expect(otlpOf(unset)?.metrics?.intervalMs).toBe(60_000);
  });

  it.each<[Environment, string]>([
    [
      { OTEL_METRIC_EXPORT_INTERVAL: "0" },
      "OTEL_METRIC_EXPORT_INTERVAL must be a whole number from 100 to 3600000",
    ],
    [
      { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: "collector:4318" },
      "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT must be a URL such as http://collector:4318",
    ],
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: "http://", OTEL_LOGS_EXPORTER: "otlp" },
      "OTEL_EXPORTER_OTLP_ENDPOINT must be a URL such as http://collector:4318",
    ],
  ])("refuses %j", (env, problem) => {
    const loaded = loadConfig({ flags: {}, env });
    expect(loaded).toMatchObject({ kind: "problems", problems: [problem] });
  });

  it("takes an address without a scheme for gRPC", () => {
    const env = {
      OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: "collector:4317",
      OTEL_EXPORTER_OTLP_PROTOCOL: "grpc",
    };
    expect(otlpOf(env)?.metrics?.protocol).toBe("grpc");
  });
});
