import { type Attributes, type HrTime, ValueType } from "@opentelemetry/api";
import { millisToHrTime } from "@opentelemetry/core";
import { OTLPMetricExporter as GrpcExporter } from "@opentelemetry/exporter-metrics-otlp-grpc";
import { OTLPMetricExporter as JsonExporter } from "@opentelemetry/exporter-metrics-otlp-http";
import { OTLPMetricExporter as ProtobufExporter } from "@opentelemetry/exporter-metrics-otlp-proto";
import { emptyResource } from "@opentelemetry/resources";
import {
  AggregationTemporality,
  type CollectionResult,
  type DataPoint,
  DataPointType,
  type Histogram,
  MeterProvider,
  type MetricData,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import type { MetricFamily, SeriesSample } from "../base/metrics.js";
import { readVersion } from "../base/version.js";
import type { ExportParts } from "./export-parts.js";
import { type ExportSettings, observed } from "./exporter-sdk.js";
import { resourceOf } from "./resource-sdk.js";

/** Maximum number of data points in a message: nothing is decided while one is created. */
const pointsMax = 2_000;

/** Maximum time of a push, in milliseconds, unless the interval is shorter. */
const pushMsMax = 30_000;

const exporters = {
  "http/protobuf": ProtobufExporter,
  "http/json": JsonExporter,
  grpc: GrpcExporter,
} as const;

/**
 * Pushes all metrics of `families` every `intervalMs`, and once more when it is closed.
 *
 * Names, labels and values are those of the scrape. Metrics have no unit of their own, so that no
 * receiver appends one to a name that already has it.
 *
 * Source: OpenTelemetry, "Prometheus and OpenMetrics Compatibility".
 */
export function createMetricExport(
  { protocol, identity, intervalMs }: ExportSettings & { readonly intervalMs: number },
  { families, onFailed }: ExportParts & { readonly families: () => AsyncIterable<MetricFamily> },
): { close(): Promise<void> } {
  const exporter = observed(new exporters[protocol](), (_, failure) => {
    if (failure !== undefined) onFailed(failure);
  });
  // JSON has neither infinity nor NaN.
  const isShown = protocol === "http/json" ? Number.isFinite : () => true;
  const reader = new PeriodicExportingMetricReader({
    exporter,
    exportIntervalMillis: intervalMs,
    exportTimeoutMillis: Math.min(pushMsMax, intervalMs),
    maxExportBatchSize: pointsMax,
    metricProducers: [{ collect: () => collect(families(), isShown) }],
  });
  const provider = new MeterProvider({ resource: resourceOf(identity), readers: [reader] });
  return { close: () => provider.shutdown() };
}

async function collect(
  families: AsyncIterable<MetricFamily>,
  isShown: (value: number) => boolean,
): Promise<CollectionResult> {
  const startTime = millisToHrTime(performance.timeOrigin);
  const metrics: MetricData[] = [];
  for await (const family of families) {
    const times = { startTime, endTime: millisToHrTime(Date.now()) };
    metrics.push(metricData(family, times, isShown));
  }
  const scope = { name: "headgate", version: readVersion() };
  const scopeMetrics = [{ scope, metrics: metrics.filter((one) => one.dataPoints.length > 0) }];
  // The reader adds the resource.
  return { resourceMetrics: { resource: emptyResource(), scopeMetrics }, errors: [] };
}

type PointTimes = Readonly<Record<"startTime" | "endTime", HrTime>>;

function metricData(
  { name, help, type, samples }: MetricFamily,
  times: PointTimes,
  isShown: (value: number) => boolean,
): MetricData {
  const common = {
    descriptor: { name, description: help, unit: "", valueType: ValueType.DOUBLE },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  };
  if (type === "histogram") {
    const dataPoints = histogramPoints(samples, times);
    return { ...common, dataPointType: DataPointType.HISTOGRAM, dataPoints };
  }
  const dataPoints = samples
    .filter(({ value }) => isShown(value))
    .map(({ labels, value }) => ({ ...times, attributes: attributesOf(labels), value }));
  if (type === "gauge") return { ...common, dataPointType: DataPointType.GAUGE, dataPoints };
  return { ...common, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints };
}

/** Converts labels to text, as in the scrape. */
function attributesOf(labels: SeriesSample["labels"]): Attributes {
  return Object.fromEntries(Object.entries(labels).map(([name, value]) => [name, String(value)]));
}

/** Computes counts of single buckets from the scrape's cumulative ones. */
function histogramPoints(
  samples: readonly SeriesSample[],
  times: PointTimes,
): DataPoint<Histogram>[] {
  const bySeries = new Map<
    string,
    { readonly attributes: Attributes; readonly value: Histogram }
  >();
  for (const { name, labels, value } of samples) {
    const { le, ...others } = labels;
    const attributes = attributesOf(others);
    const id = JSON.stringify(attributes);
    const known = bySeries.get(id);
    const series = known ?? { attributes, value: emptyHistogram() };
    if (known === undefined) bySeries.set(id, series);
    const { value: histogram } = series;
    if (le === undefined) {
      if (name.endsWith("_sum")) histogram.sum = value;
      continue;
    }
    const { boundaries, counts } = histogram.buckets;
    if (le !== "+Inf") boundaries.push(Number(le));
    counts.push(value - histogram.count);
    histogram.count = value;
  }
  return [...bySeries.values()].map((series) => ({ ...times, ...series }));
}

function emptyHistogram(): Histogram {
  return { buckets: { boundaries: [], counts: [] }, sum: 0, count: 0 };
}
