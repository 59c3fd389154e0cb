import { describe, expect, it } from "vitest";
import { loadConfig } from "../../../../src/app/config/config.js";
import type { TracingChoice } from "../../../../src/app/config/tracing-choice.js";

type Environment = Readonly<Record<string, string>>;

function tracingOf(env: Environment): TracingChoice | undefined {
  const loaded = loadConfig({ flags: {}, env });
  if (loaded.kind === "problems") throw new Error(loaded.problems.join("\n"));
  return loaded.config.tracing;
}

const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318" };

describe("chooseTracing()", () => {
  it.each<[Environment, boolean]>([
    [{}, false],
    [{ TRACING_ENABLED: "true" }, true],
    [{ TRACING_ENABLED: "false", ...endpoint }, false],
    [endpoint, true],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://collector:4318/v1/traces" }, true],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "" }, false],
    [{ ...endpoint, OTEL_SDK_DISABLED: "true" }, false],
    [{ ...endpoint, OTEL_TRACES_EXPORTER: "none" }, false],
  ])("with %j traces: %s", (env, isTraced) => {
    expect(tracingOf(env) !== undefined).toBe(isTraced);
  });

  it("is called as envoyproxy/ratelimit is, and records all, unless told otherwise", () => {
    expect(tracingOf({ TRACING_ENABLED: "true" })).toEqual({
      protocol: "http",
      serviceName: "RateLimit",
      samplingRatio: 1,
    });
    expect(
      tracingOf({
        TRACING_ENABLED: "true",
        TRACING_SERVICE_NAME: "limits",
        TRACING_SERVICE_NAMESPACE: "edge",
        TRACING_SERVICE_INSTANCE_ID: "pod-7",
        TRACING_EXPORTER_PROTOCOL: "grpc",
        TRACING_SAMPLING_RATE: "0.25",
      }),
    ).toEqual({
      protocol: "grpc",
      serviceName: "limits",
      serviceNamespace: "edge",
      serviceInstanceId: "pod-7",
      samplingRatio: 0.25,
    });
  });

  it("listens to the standard names where its own say nothing", () => {
    const env = { ...endpoint, OTEL_SERVICE_NAME: "s", OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" };
    expect(tracingOf(env)).toMatchObject({ serviceName: "s", protocol: "grpc" });
    const own = { TRACING_SERVICE_NAME: "own", TRACING_EXPORTER_PROTOCOL: "http" };
    expect(tracingOf({ ...env, ...own })).toMatchObject({ serviceName: "own", protocol: "http" });
    const sampler = { OTEL_TRACES_SAMPLER: "always_off" };
    expect(tracingOf({ ...endpoint, ...sampler })?.samplingRatio).toBeUndefined();
  });

  it.each(["1.1", "-1", "x"])("refuses a sampling rate of %s", (text) => {
    const loaded = loadConfig({ flags: {}, env: { TRACING_SAMPLING_RATE: text } });
    expect(loaded).toMatchObject({
      kind: "problems",
      problems: ["TRACING_SAMPLING_RATE must be a number from 0 to 1"],
    });
  });
});
