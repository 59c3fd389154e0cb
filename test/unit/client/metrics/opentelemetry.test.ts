import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { describe, expect, it } from "vitest";
import { libraryMetrics } from "../../../../src/client/metrics/library-metrics.js";
import { observeMetrics } from "../../../../src/client/metrics/opentelemetry.js";
import { measuredParts } from "../../../support/measured-parts.js";

/** What a collection has, by the metric's name: values and their labels. */
async function collect(reader: PeriodicExportingMetricReader) {
  const { resourceMetrics } = await reader.collect();
  const metrics = resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics);
  return new Map(
    metrics.map(({ descriptor, dataPoints }) => [
      descriptor.name,
      dataPoints.map(({ value, attributes }) => ({ value, ...attributes })),
    ]),
  );
}

describe("observeMetrics()", () => {
  it("observes each part's state and counts, until it is ended", async () => {
    const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
    const exportIntervalMillis = 2 ** 31 - 1;
    const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis });
    const provider = new MeterProvider({ readers: [reader] });
    const measured = await measuredParts();
    const end = observeMetrics(provider.getMeter("test"), measured);
    const collected = await collect(reader);
    const calls = { value: 2, admission: "orders" };
    expect(collected.get("headgate_client_calls")).toContainEqual(calls);
    // One without a limit has no point: no number says "none".
    expect(collected.get("headgate_client_limit")).toEqual([{ value: 1, admission: "orders" }]);
    expect(collected.get("headgate_server_refused")).toEqual([
      { value: 1, admission: "shop", priority: "low", cause: "priority" },
    ]);
    expect(collected.get("headgate_window_size")).toEqual([{ value: 20, admission: "auth" }]);
    const names = libraryMetrics.map(({ name }) => name.replace(/_total$/, ""));
    expect([...collected.keys()].toSorted()).toEqual(names.toSorted());
    end();
    await measured.calls[0]?.run(async () => 3);
    expect((await collect(reader)).get("headgate_client_calls")).toContainEqual(calls);
    await provider.shutdown();
  });
});
