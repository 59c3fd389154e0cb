import { WireType } from "@bufbuild/protobuf/wire";
import type { GradientFacts } from "../../core/feedback/feedback.js";
import { FieldReader, fieldTag, leanPartsMax, TooManyFieldsError } from "../codec/field-reader.js";
import { NameTable } from "./metrics-names.js";
import { type NodeIdentity, readNodeIdentity } from "./node-identity.js";
import { familyTags, PlainFamily } from "./plain-family.js";
import { type RawMetric, readStatistic, statisticQuantiles } from "./prometheus-reader.js";

/** A counter of a cluster, by what it counts. */
export type ClusterCounter =
  | "completed"
  | "failed"
  | "overflowed"
  | "dropped"
  | "connectionsOverflowed";

/** A value of a cluster, or of a gradient controller, from one flush of an Envoy. */
export type MetricSample =
  /** The increase since the previous flush. */
  | (ClusterStamp & {
      readonly kind: "count";
      readonly counter: ClusterCounter;
      /** Distinguishes counters of Envoy that are combined into one of Headgate's. */
      readonly series: string;
      readonly delta: number;
    })
  | (ClusterStamp & { readonly kind: "inFlight"; readonly value: number })
  /** The remaining capacity of the breaker at HIGH, as of the last request there. */
  | (ClusterStamp & { readonly kind: "highRemaining"; readonly value: number })
  /** Latencies since the previous flush. */
  | (ClusterStamp & {
      readonly kind: "latency";
      readonly count: number;
      readonly sumMs: number;
      readonly buckets: readonly LatencyBucket[];
    })
  /** The same latencies, as quantiles. */
  | (ClusterStamp & {
      readonly kind: "quantiles";
      readonly count: number;
      readonly sumMs: number;
      readonly minMs: number | undefined;
      readonly p50Ms: number | undefined;
    })
  | {
      readonly kind: "gradient";
      /** The statistics prefix of the listener with the filter. */
      readonly prefix: string;
      readonly fact: keyof GradientFacts;
      readonly value: number;
    };

interface ClusterStamp {
  readonly cluster: string;
  /** The time of the value on the Envoy's wall clock, in milliseconds; 0: not stated. */
  readonly stampMs: number;
}

/** Requests up to a latency in milliseconds, all lower buckets included. */
export interface LatencyBucket {
  readonly upTo: number;
  readonly count: number;
}

/** The relevant parts of a message of the metrics service. */
export interface MetricsMessage {
  /** In the first message of a stream. */
  readonly node: NodeIdentity | undefined;
  /** Valid until the decoder reads its next message. */
  readonly samples: readonly MetricSample[];
}

/** Fields. Source: envoy/service/metrics/v3/metrics_service.proto, metrics.proto. */
const identifierTag = fieldTag(1, WireType.LengthDelimited);
const nodeTag = fieldTag(1, WireType.LengthDelimited);
const familyTag = fieldTag(2, WireType.LengthDelimited);

/**
 * Maximum number of fields that are read of one message. An unwanted family has two, and about 85
 * bytes with its name: as many fill a message. A cluster of a service has 150, a hundred of
 * them latencies, so 600 clusters fit. If an Envoy has more, `batch_size` of its sink divides them.
 */
const metricsFieldsMax = 98_304;

/** Maximum number of families, metrics and their parts. A cluster's latencies have 32. */
const metricsPartsMax = 49_152;

/** Maximum number of metrics in wanted families, an object each: those of 1,000 services. */
const metricsMax = 16_384;

/** Bytes per part of a metric: at least a number with its field, and a head of two bytes. */
const metricPartBytes = 10;

/** Maximum number of buckets of one histogram. Envoy has 19 by default. */
export const bucketsMax = 256;

/** Whether values of a cluster are wanted. `said` is the node, if the message has stated it. */
type IsWantedCluster = (cluster: string, said: NodeIdentity | undefined) => boolean;

/** Maximum number of owner texts that all names and Envoys share. Then the cache is cleared. */
const keptOwnersMax = 10_000;

/** Decodes messages of any number of streams. */
export class MetricsDecoder {
  readonly #names = new NameTable(
    rows.map(({ after }) => after),
    (name) => this.#meaningOf(name),
  );
  readonly #owners = new Map<string, string>();
  readonly #plain = new PlainFamily();
  readonly #samples = new SampleList();

  /**
   * Decodes a message. Families with irrelevant names are skipped unread: an Envoy without a filter
   * of statistics sends tens of thousands.
   *
   * @param isWanted families of other clusters are not read if their name contains the cluster,
   *   except requests in flight, which show that there is such a cluster
   * @throws an error for bytes that are not such a message
   */
  decode(bytes: Uint8Array, isWanted: IsWantedCluster = () => true): MetricsMessage {
    const partsMax = Math.min(metricsPartsMax, leanPartsMax(bytes.length, metricPartBytes));
    const reader = new FieldReader(bytes, metricsFieldsMax, partsMax);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const samples = this.#samples;
    samples.clear();
    const reading: Reading = {
      ...{ isWanted, view, samples, metricsLeft: metricsMax, node: undefined },
      ...{ owner: undefined, isOwnerWanted: false, other: undefined, isOtherWanted: false },
    };
    const takePlain = (_: Buffer, start: number, end: number): true | undefined =>
      this.#takePlain(reading, start, end);
    while (reader.next()) {
      if (reader.tag === familyTag) {
        if (reader.tryPart(takePlain) !== undefined) continue;
        const outerEnd = reader.enter();
        this.#readFamily(reader, reading);
        reader.leave(outerEnd);
      } else if (reader.tag === identifierTag) {
        reading.node = readIdentifier(reader, reading.node);
      } else reader.skip();
    }
    return { node: reading.node, samples: samples.finish() };
  }

  /** Takes a family that starts with its name, if it is unwanted or has the normal form. */
  #takePlain(to: Reading, start: number, end: number): true | undefined {
    const { view } = to;
    if (end - start < 10 || view.getUint8(start) !== familyTags.name) return undefined;
    const nameBytes = view.getUint8(start + 1);
    const nameStart = start + 2;
    const nameEnd = nameStart + nameBytes;
    if (nameBytes > 127 || nameBytes < 8 || nameEnd > end) return undefined;
    if (!this.#names.isWantedEnd(view, nameEnd)) return true;
    const found = this.#names.find(view, nameStart, nameEnd);
    // The rest of a family with an irrelevant name is not read, even if it has another name.
    if (found === undefined) return true;
    if (found.owner === "") return undefined;
    if (!found.row.isAlwaysRead && !isOwnerWanted(found.owner, to)) return true;
    const metric = this.#plain.read(view, nameEnd, end);
    if (metric === undefined) return undefined;
    takeMetric(found, metric, to);
    return true;
  }

  #meaningOf(name: string): NameMeaning | undefined {
    const meaning = meaningOf(name);
    if (meaning === undefined) return undefined;
    const { row, owner } = meaning;
    const kept = this.#owners.get(owner);
    if (kept !== undefined) return { row, owner: kept };
    if (this.#owners.size >= keptOwnersMax) this.#owners.clear();
    this.#owners.set(owner, owner);
    return meaning;
  }

  /** Reads a family. Every encoder writes its name first. Anything before it is ignored. */
  #readFamily(reader: FieldReader, to: Reading): void {
    let found: NameMeaning | undefined;
    while (reader.next()) {
      if (reader.tag === familyTags.name) {
        reader.pass();
        found = this.#names.find(to.view, reader.partStart, reader.at);
        if (found === undefined) return;
        const { row, owner } = found;
        if (owner !== "" && !row.isAlwaysRead && !isOwnerWanted(owner, to)) return;
      } else if (reader.tag === familyTags.metric && found !== undefined) {
        takeMetric(found, readStatistic(reader), to);
      } else reader.skip();
    }
  }
}

/** The state of the reading of one message. */
interface Reading {
  readonly isWanted: IsWantedCluster;
  readonly view: DataView;
  readonly samples: SampleList;
  metricsLeft: number;
  node: NodeIdentity | undefined;
  /**
   * The last two owners that were checked: families of a cluster follow each other, mixed with
   * those of its internal or external requests.
   */
  owner: string | undefined;
  isOwnerWanted: boolean;
  other: string | undefined;
  isOtherWanted: boolean;
}

function isOwnerWanted(owner: string, to: Reading): boolean {
  if (to.owner === owner) return to.isOwnerWanted;
  if (to.other === owner) return to.isOtherWanted;
  to.other = to.owner;
  to.isOtherWanted = to.isOwnerWanted;
  to.owner = owner;
  to.isOwnerWanted = to.isWanted(owner, to.node);
  return to.isOwnerWanted;
}

/** @throws TooManyFieldsError */
function takeMetric({ row, owner }: NameMeaning, metric: RawMetric, to: Reading): void {
  to.metricsLeft -= 1;
  if (to.metricsLeft < 0) throw new TooManyFieldsError();
  row.read(metric, owner === "" ? ownerByLabel(row, metric) : owner, to.samples);
}

type Open<Fields> = { -readonly [field in keyof Fields]: Fields[field] };
type SampleOf<Kind> = Open<Extract<MetricSample, { readonly kind: Kind }>>;

/**
 * The samples of one message. Objects of the kinds that every Envoy sends are reused for the next
 * message: a thousand Envoys send a hundred thousand of them each second.
 */
class SampleList {
  readonly count = new Spares<SampleOf<"count">>(() => {
    return { kind: "count", ...blankStamp, counter: "completed", series: "", delta: 0.5 };
  });
  readonly inFlight = new Spares<SampleOf<"inFlight">>(() => {
    return { kind: "inFlight", ...blankStamp, value: 0.5 };
  });
  readonly highRemaining = new Spares<SampleOf<"highRemaining">>(() => {
    return { kind: "highRemaining", ...blankStamp, value: 0.5 };
  });
  readonly quantiles = new Spares<SampleOf<"quantiles">>(() => {
    const unknown = { minMs: undefined, p50Ms: undefined };
    return { kind: "quantiles", ...blankStamp, count: 0, sumMs: 0.5, ...unknown };
  });
  readonly #list: MetricSample[] = [];
  #count = 0;

  clear(): void {
    this.#count = 0;
    for (const one of [this.count, this.inFlight, this.highRemaining, this.quantiles]) {
      one.clear();
    }
  }

  add(sample: MetricSample): void {
    this.#list[this.#count] = sample;
    this.#count += 1;
  }

  finish(): readonly MetricSample[] {
    if (this.#list.length > this.#count) this.#list.length = this.#count;
    return this.#list;
  }
}

/** Initial values. Fields that may be fractional start with a fraction. */
const blankStamp = { cluster: "", stampMs: 0.5 } as const;

class Spares<Made> {
  readonly #make: () => Made;
  readonly #made: Made[] = [];
  #count = 0;

  constructor(make: () => Made) {
    this.#make = make;
  }

  take(): Made {
    const spare = this.#made[this.#count] ?? this.#make();
    this.#made[this.#count] = spare;
    this.#count += 1;
    return spare;
  }

  clear(): void {
    this.#count = 0;
  }
}

/** @param known the node that was read before: of several nodes, the first one counts */
function readIdentifier(
  reader: FieldReader,
  known: NodeIdentity | undefined,
): NodeIdentity | undefined {
  let node = known;
  const outerEnd = reader.enter();
  while (reader.next()) {
    if (reader.tag === nodeTag && node === undefined) node = readNodeIdentity(reader);
    else reader.skip();
  }
  reader.leave(outerEnd);
  return node;
}

/** The meaning of the name of a family. */
interface NameMeaning {
  readonly row: StatRow;
  /** The cluster or listener. Empty if a label names it. */
  readonly owner: string;
}

/** How a statistic is read. */
interface StatRow {
  /** The texts before and after the name of a cluster or listener. */
  readonly before: string;
  readonly after: string;
  /** The label with that name, if Envoy extracts it from the statistic's name. */
  readonly label: string;
  /** Whether it is also read for unwanted clusters. */
  readonly isAlwaysRead: boolean;
  readonly read: (metric: RawMetric, owner: string, to: SampleList) => void;
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
  gaugeRow("upstream_rq_active", "inFlight"),
  gaugeRow("circuit_breakers.high.remaining_rq", "highRemaining"),
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

/**
 * Finds the owner of a statistic: in `cluster.<name>.upstream_rq_time`. If Envoy extracts tags from
 * names, a label names the owner instead. Istio ends its names with a `;`.
 */
function meaningOf(name: string): NameMeaning | undefined {
  const row = rowsByEnd.get(name.slice(name.lastIndexOf(".") + 1));
  if (row === undefined || !name.startsWith(row.before) || !name.endsWith(row.after)) {
    return undefined;
  }
  const { before, after } = row;
  const owner = name.slice(before.length, Math.max(before.length, name.length - after.length));
  return { row, owner: owner.replace(/;$/, "") };
}

function ownerByLabel({ label }: StatRow, { labels }: RawMetric): string {
  return (labels.find((pair) => pair.name === label)?.value ?? "").replace(/;$/, "");
}

function clusterRow(stat: string, read: StatRow["read"]): StatRow {
  return {
    before: "cluster.",
    after: `.${stat}`,
    label: "envoy.cluster_name",
    isAlwaysRead: false,
    read,
  };
}

function gaugeRow(stat: string, kind: "inFlight" | "highRemaining"): StatRow {
  const row = clusterRow(stat, (metric, cluster, to) => {
    const { gauge } = metric;
    if (!isAmount(gauge)) return;
    const sample = to[kind].take();
    sample.cluster = cluster;
    sample.stampMs = stampOf(metric);
    sample.value = gauge;
    to.add(sample);
  });
  return { ...row, isAlwaysRead: kind === "inFlight" };
}

function counterRow(stat: string, counter: ClusterCounter): StatRow {
  return clusterRow(stat, (metric, cluster, to) => {
    const delta = metric.counter;
    if (!isAmount(delta)) return;
    const sample = to.count.take();
    sample.cluster = cluster;
    sample.stampMs = stampOf(metric);
    sample.counter = counter;
    sample.series = stat;
    sample.delta = delta;
    to.add(sample);
  });
}

/** Restricts a row to those of its series that have a label. The others are not read. */
function onlyWith(
  wanted: { readonly name: string; readonly value: string },
  row: StatRow,
): StatRow {
  const { name, value } = wanted;
  return {
    ...row,
    read: (metric, owner, to) => {
      const isWanted = metric.labels.some((pair) => pair.name === name && pair.value === value);
      if (isWanted) row.read(metric, owner, to);
    },
  };
}

function gradientRow(stat: string, fact: keyof GradientFacts): StatRow {
  return {
    before: "http.",
    after: `.adaptive_concurrency.gradient_controller.${stat}`,
    label: "envoy.http_conn_manager_prefix",
    isAlwaysRead: true,
    read: ({ gauge }, prefix, to) => {
      if (!isAmount(gauge)) return;
      // Envoy's gauges are integers: it sends the gradient times a thousand.
      const value = fact === "gradient" ? gauge / 1_000 : gauge;
      to.add({ kind: "gradient", prefix, fact, value });
    },
  };
}

/** Envoy sends the times of a flush as quantiles, as buckets, or as both, each in a family. */
function readTimes(metric: RawMetric, cluster: string, to: SampleList): void {
  const { histogram, summary } = metric;
  const stampMs = stampOf(metric);
  if (histogram !== undefined) {
    const { count, sum: sumMs, buckets } = histogram;
    if (!isAmount(count) || !isAmount(sumMs) || buckets.length > bucketsMax) return;
    to.add({ kind: "latency", cluster, stampMs, count, sumMs, buckets });
    return;
  }
  if (summary === undefined) return;
  const { count, sum: sumMs, quantiles } = summary;
  if (!isAmount(count) || !isAmount(sumMs)) return;
  const sample = to.quantiles.take();
  sample.cluster = cluster;
  sample.stampMs = stampMs;
  sample.count = count;
  sample.sumMs = sumMs;
  sample.minMs = valueAt(statisticQuantiles.min, quantiles);
  sample.p50Ms = valueAt(statisticQuantiles.median, quantiles);
  to.add(sample);
}

function valueAt(
  wanted: number,
  quantiles: NonNullable<RawMetric["summary"]>["quantiles"],
): number | undefined {
  for (const { at, value } of quantiles) {
    if (at === wanted) return isAmount(value) ? value : undefined;
  }
  return undefined;
}

function stampOf({ timestampMs }: RawMetric): number {
  return isAmount(timestampMs) ? timestampMs : 0;
}

/** Whether it is a number of at least 0, and small enough for arithmetic. */
function isAmount(value: number | undefined): value is number {
  return value !== undefined && value >= 0 && value <= Number.MAX_SAFE_INTEGER;
}
