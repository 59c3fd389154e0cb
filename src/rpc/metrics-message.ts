import { fromBinary } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import type { GradientFacts } from "../core/feedback.js";
import * as metricsService from "../gen/envoy/service/metrics/v3/metrics_service_pb.js";
import { FieldReader } from "./field-reader.js";
import { type NodeIdentity, nodeIdentity } from "./node-identity.js";
import { type RawMetric, readMetric } from "./prometheus-reader.js";

const { StreamMetricsMessage_IdentifierSchema: identifierSchema } = metricsService;

/** A counter of a cluster, by what it counts. */
export type ClusterCounter =
  | "completed"
  | "failed"
  | "overflowed"
  | "dropped"
  | "connectionsOverflowed";

/** A number of a cluster, or of a gradient controller, as one flush of an Envoy has it. */
export type MetricSample =
  /** What was counted since the flush before. */
  | (ClusterStamp & {
      readonly kind: "count";
      readonly counter: ClusterCounter;
      /** Two counters of Envoy may be one of ours: they are told apart by this. */
      readonly series: string;
      readonly delta: number;
    })
  | (ClusterStamp & { readonly kind: "inFlight"; readonly value: number })
  /** Latencies since the flush before. */
  | (ClusterStamp & {
      readonly kind: "latency";
      readonly count: number;
      readonly sumMs: number;
      readonly buckets: readonly LatencyBucket[];
    })
  /** What the same latencies say by quantile. */
  | (ClusterStamp & {
      readonly kind: "quantiles";
      readonly count: number;
      readonly sumMs: number;
      readonly minMs: number | undefined;
      readonly p50Ms: number | undefined;
    })
  | {
      readonly kind: "gradient";
      /** The statistics prefix of the listener whose filter it is. */
      readonly prefix: string;
      readonly fact: keyof GradientFacts;
      readonly value: number;
    };

interface ClusterStamp {
  readonly cluster: string;
  /** When it was true, by the wall clock of the Envoy, in milliseconds; 0: not said. */
  readonly stampMs: number;
}

/** Requests up to a latency in milliseconds, all lower buckets included. */
export interface LatencyBucket {
  readonly upTo: number;
  readonly count: number;
}

/** A message of the metrics service, as far as it is about us. */
export interface MetricsMessage {
  /** In the first message of a stream. */
  readonly node: NodeIdentity | undefined;
  readonly samples: readonly MetricSample[];
}

/** Field numbers. Source: envoy/service/metrics/v3/metrics_service.proto, metrics.proto. */
const fields = { identifier: 1, metrics: 2, familyName: 1, familyMetric: 4 } as const;

/** Buckets of one histogram; Envoy has 19 by default. */
export const bucketsMax = 256;

/**
 * Reads a message. Families whose names say nothing to us are passed over unread: an Envoy without
 * a filter of statistics sends tens of thousands.
 *
 * @throws an error for bytes that are no such message
 */
export function decodeMetrics(bytes: Uint8Array): MetricsMessage {
  const reader = new FieldReader(bytes);
  const samples: MetricSample[] = [];
  let node: NodeIdentity | undefined;
  reader.eachField((field, type) => {
    if (type !== WireType.LengthDelimited) return false;
    if (field === fields.metrics) readFamily(reader, samples);
    else if (field === fields.identifier) {
      const identifier = fromBinary(identifierSchema, reader.part());
      if (identifier.node !== undefined) node = nodeIdentity(identifier.node);
    } else return false;
    return true;
  });
  return { node, samples };
}

/** Its name comes first, as every encoder writes it; what comes before a name is nobody's. */
function readFamily(reader: FieldReader, to: MetricSample[]): void {
  let name = "";
  let row: StatRow | undefined;
  reader.eachFieldOfPart((field, type) => {
    if (type !== WireType.LengthDelimited) return false;
    if (field === fields.familyName) {
      name = reader.text();
      row = rowOf(name);
      return true;
    }
    if (field !== fields.familyMetric || row === undefined) return false;
    const metric = readMetric(reader);
    const sample = row.read(metric, nameIn(name, row, metric));
    if (sample !== undefined) to.push(sample);
    return true;
  });
}

/** What is read of a statistic. */
interface StatRow {
  /** What stands before the name of a cluster or listener, and after it. */
  readonly before: string;
  readonly after: string;
  /** The label that has that name where Envoy takes it out of the statistic's. */
  readonly label: string;
  readonly read: (metric: RawMetric, owner: string) => MetricSample | undefined;
}

/** Source: Envoy, "Cluster manager statistics" and "Adaptive concurrency", statistics. */
const rows: readonly StatRow[] = [
  counterRow("upstream_rq_completed", "completed"),
  counterRow("upstream_rq_5xx", "failed"),
  onlyWith(
    { name: "envoy.response_code_class", value: "5" },
    counterRow("upstream_rq_xx", "failed"),
  ),
  counterRow("upstream_rq_active_overflow", "overflowed"),
  counterRow("upstream_rq_pending_overflow", "overflowed"),
  counterRow("upstream_rq_drop_overload", "dropped"),
  counterRow("upstream_cx_overflow", "connectionsOverflowed"),
  clusterRow("upstream_rq_active", (metric, cluster) => {
    const value = metric.gauge;
    if (!isAmount(value)) return undefined;
    return { kind: "inFlight", cluster, stampMs: stampOf(metric), value };
  }),
  clusterRow("upstream_rq_time", readTimes),
  gradientRow("concurrency_limit", "concurrencyLimit"),
  gradientRow("gradient", "gradient"),
  gradientRow("min_rtt_msecs", "minRttMs"),
  gradientRow("sample_rtt_msecs", "sampleRttMs"),
  gradientRow("burst_queue_size", "burstQueueSize"),
];

/** By the last part of the name. */
const rowsByEnd: ReadonlyMap<string, StatRow> = new Map(
  rows.map((row) => [row.after.slice(row.after.lastIndexOf(".") + 1), row]),
);

function rowOf(name: string): StatRow | undefined {
  const row = rowsByEnd.get(name.slice(name.lastIndexOf(".") + 1));
  const isOurs = row !== undefined && name.startsWith(row.before) && name.endsWith(row.after);
  return isOurs ? row : undefined;
}

/**
 * Whose statistic it is: `cluster.<name>.upstream_rq_time`, or by a label where Envoy takes tags
 * out of names. Istio ends its names with a `;`.
 */
function nameIn(name: string, { before, after, label }: StatRow, { labels }: RawMetric): string {
  const inName = name.slice(before.length, Math.max(before.length, name.length - after.length));
  if (inName !== "") return inName.replace(/;$/, "");
  return (labels.find((pair) => pair.name === label)?.value ?? "").replace(/;$/, "");
}

function clusterRow(stat: string, read: StatRow["read"]): StatRow {
  return { before: "cluster.", after: `.${stat}`, label: "envoy.cluster_name", read };
}

function counterRow(stat: string, counter: ClusterCounter): StatRow {
  return clusterRow(stat, (metric, cluster) => {
    const delta = metric.counter;
    if (!isAmount(delta)) return undefined;
    return { kind: "count", cluster, counter, series: stat, delta, stampMs: stampOf(metric) };
  });
}

/** A row for those of its series that bear a label; the others are not read. */
function onlyWith(
  wanted: { readonly name: string; readonly value: string },
  row: StatRow,
): StatRow {
  const { name, value } = wanted;
  return {
    ...row,
    read: (metric, owner) => {
      const isWanted = metric.labels.some((pair) => pair.name === name && pair.value === value);
      return isWanted ? row.read(metric, owner) : undefined;
    },
  };
}

function gradientRow(stat: string, fact: keyof GradientFacts): StatRow {
  return {
    before: "http.",
    after: `.adaptive_concurrency.gradient_controller.${stat}`,
    label: "envoy.http_conn_manager_prefix",
    read: (metric, prefix) => {
      const value = metric.gauge;
      if (!isAmount(value)) return undefined;
      // Envoy's gauges are whole numbers: the gradient comes times a thousand.
      return { kind: "gradient", prefix, fact, value: fact === "gradient" ? value / 1_000 : value };
    },
  };
}

/** Envoy sends the times of a flush as quantiles, as buckets, or as both, each in a family. */
function readTimes(metric: RawMetric, cluster: string): MetricSample | undefined {
  const { histogram, summary } = metric;
  const stampMs = stampOf(metric);
  if (histogram !== undefined) {
    const { count, sum: sumMs } = histogram;
    if (!isAmount(count) || !isAmount(sumMs) || histogram.buckets.length > bucketsMax) {
      return undefined;
    }
    const { buckets } = histogram;
    return { kind: "latency", cluster, stampMs, count, sumMs, buckets };
  }
  if (summary === undefined) return undefined;
  const { count, sum: sumMs, quantiles } = summary;
  if (!isAmount(count) || !isAmount(sumMs)) return undefined;
  const valueAt = (wanted: number): number | undefined => {
    const value = quantiles.find(({ at }) => at === wanted)?.value;
    return isAmount(value) ? value : undefined;
  };
  const found = { minMs: valueAt(0), p50Ms: valueAt(0.5) };
  return { kind: "quantiles", cluster, stampMs, count, sumMs, ...found };
}

function stampOf({ timestampMs }: RawMetric): number {
  return isAmount(timestampMs) ? timestampMs : 0;
}

/** Whether it is a number from 0 that arithmetic can be done with. */
function isAmount(value: number | undefined): value is number {
  return value !== undefined && value >= 0 && value <= Number.MAX_SAFE_INTEGER;
}
