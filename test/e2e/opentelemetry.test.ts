import { describe, expect, it } from "vitest";
import { HeadgateProcess } from "../support/headgate-process.js";
import { type OtlpCollector, startOtlpCollector } from "../support/otlp-collector.js";
import { startOtlpServer } from "../support/otlp-server.js";
import { startScrapingPrometheus } from "../support/prometheus.js";
import { RlsClient } from "../support/rls-client.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("file");

const policy = `domain: edge
descriptors:
  - key: user
    rate_limit: {unit: hour, requests_per_unit: 3}
`;

const quick = { HEADGATE_DRAIN_DELAY_MS: "0" };

async function ask(headgate: HeadgateProcess, count: number): Promise<void> {
  const client = new RlsClient(headgate.grpcPort);
  stage.atEnd(() => client.close());
  for (let i = 0; i < count; i += 1) await client.ask({ descriptors: [["user=caller-73"]] });
}

/** The last value of each series of a metric, by outcome. */
function lastOutcomes(collector: OtlpCollector, name: string): ReadonlyMap<unknown, unknown> {
  const points = collector.exports
    .flatMap((one) => one.metrics)
    .flatMap((metric) => (metric.name === name ? metric.points : []));
  return new Map(points.map(({ labels, value }) => [labels["outcome"], value]));
}

// One waits for ten seconds until it may give up, and the others for less.
describe.concurrent("a service with an OpenTelemetry collector", () => {
  it("sends metrics and log lines while it runs, and the last ones when it stops", async () => {
    const collector = await startOtlpCollector(stage);
    const env = {
      ...quick,
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.port}`,
      OTEL_EXPORTER_OTLP_HEADERS: "authorization=secret-73",
      OTEL_METRICS_EXPORTER: "otlp",
      OTEL_LOGS_EXPORTER: "otlp",
      OTEL_TRACES_EXPORTER: "none",
      OTEL_METRIC_EXPORT_INTERVAL: "300",
      OTEL_SERVICE_NAME: "limits",
      OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test",
      REDIS_AUTH: "secret-73",
    };
    const headgate = await HeadgateProcess.start(stage, { policy, env });
    await ask(headgate, 5);
    const name = "headgate_hits_total";
    await waitFor("a push has hits", () => lastOutcomes(collector, name).size > 0);
    const scrape = (await headgate.get("/metrics")).body;
    expect(scrape).toContain('headgate_hits_total{domain="edge",rule="user",outcome="over"} 2');
    await ask(headgate, 4);
    expect(await headgate.terminate()).toEqual({ code: 0 });
    // Counted after the last push of the interval, or in it: at the end it is there.
    expect(Object.fromEntries(lastOutcomes(collector, name))).toMatchObject({ over: 6 });
    const logs = collector.exports.flatMap((one) => one.logs);
    const events = logs.map(({ event }) => event);
    expect(events).toContain("serving");
    expect(events.at(-1)).toBe("stopped");
    const resources = collector.exports.map(({ resource }) => resource);
    expect(new Set(resources.map((one) => one["service.instance.id"])).size).toBe(1);
    expect(resources[0]).toMatchObject({
      "service.name": "limits",
      "deployment.environment.name": "test",
    });
    for (const hidden of ["secret-73", "caller-73"]) {
      expect(collector.text).not.toContain(hidden);
      expect(headgate.output).not.toContain(hidden);
    }
  });

  it("is another instance with another start after a restart", async () => {
    const collector = await startOtlpCollector(stage);
    const path = `http://127.0.0.1:${collector.port}/v1/metrics`;
    const env = { ...quick, OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: path };
    for (let i = 0; i < 2; i += 1) {
      const headgate = await HeadgateProcess.start(stage, { policy, env });
      await ask(headgate, 1 + i);
      expect(await headgate.terminate()).toEqual({ code: 0 });
    }
    const ends = collector.exports.flatMap(({ metrics, resource }) =>
      metrics
        .filter(({ name }) => name === "headgate_decision_duration_seconds")
        .map(({ points: [point] }) => ({ instance: resource["service.instance.id"], point })),
    );
    const [first, second] = ends;
    expect(ends.map(({ point }) => point?.histogram?.count)).toEqual([1, 2]);
    expect(first?.instance).not.toBe(second?.instance);
    expect(second?.point?.startNano).toBeGreaterThan(first?.point?.timeNano ?? 0n);
  });

  it("sends neither metrics nor log lines because of an endpoint alone", async () => {
    const collector = await startOtlpCollector(stage);
    const traces = await startOtlpServer(stage);
    const env = {
      ...quick,
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.port}`,
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `http://127.0.0.1:${traces.port}/v1/traces`,
    };
    const headgate = await HeadgateProcess.start(stage, { policy, env });
    await ask(headgate, 1);
    expect(await headgate.terminate()).toEqual({ code: 0 });
    expect(traces.spans).toHaveLength(1);
    expect(collector.messageCount).toBe(0);
  });

  it("ends cleanly, and decides, although the collector never answers", async () => {
    const collector = await startOtlpCollector(stage, () => "silence");
    const env = {
      ...quick,
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.port}`,
      OTEL_METRICS_EXPORTER: "otlp",
      OTEL_LOGS_EXPORTER: "otlp",
      OTEL_TRACES_EXPORTER: "none",
      OTEL_METRIC_EXPORT_INTERVAL: "100",
      OTEL_EXPORTER_OTLP_TIMEOUT: "600000",
    };
    const headgate = await HeadgateProcess.start(stage, { policy, env });
    await waitFor("messages come", () => collector.messageCount > 1);
    await ask(headgate, 5);
    expect(await headgate.terminate()).toEqual({ code: 0 });
  });

  it("does not start with headers that no exporter can send, and does not show them", async () => {
    const env = {
      OTEL_METRICS_EXPORTER: "otlp",
      OTEL_EXPORTER_OTLP_PROTOCOL: "grpc",
      OTEL_EXPORTER_OTLP_HEADERS: "token=secret-73%0d%0a",
    };
    const starting = HeadgateProcess.start(stage, { policy, env });
    await expect(starting).rejects.toThrow(/OTEL_EXPORTER_OTLP_HEADERS/);
    await expect(starting).rejects.not.toThrow(/secret-73/);
  });
});

describe.concurrent("a service that traces", () => {
  it("shows Prometheus, in OpenMetrics, the trace of a decision in a latency bucket", async () => {
    const traces = await startOtlpServer(stage);
    const env = {
      ...quick,
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `http://127.0.0.1:${traces.port}/v1/traces`,
    };
    const headgate = await HeadgateProcess.start(stage, { policy, env });
    await ask(headgate, 1);
    const url = await startScrapingPrometheus(stage, headgate.httpPort);
    const read = async (path: string) => (await fetch(`${url}/api/v1/${path}`)).text();
    const query = "query_exemplars?query=headgate_decision_duration_seconds_bucket&start=0&end=9e9";
    const found = await waitFor("Prometheus has an exemplar", async () => {
      const text = await read(query);
      return /"trace_id":"([0-9a-f]{32})"/.exec(text)?.[1];
    });
    await waitFor("the span arrives", () => traces.spans.length > 0);
    expect(found).toBe(traces.spans[0]?.traceId);
    const targets = await read("targets");
    expect(targets).toContain('"health":"up"');
    expect(targets).toContain('"lastError":""');
    for (const name of ["headgate_requests_total", "process_cpu_seconds_total"]) {
      expect(await read(`query?query=${name}`), name).toContain(name);
    }
  });
});
