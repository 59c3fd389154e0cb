import { create, toBinary } from "@bufbuild/protobuf";
import { NodeSchema } from "../../src/gen/envoy/config/core/v3/base_pb.js";
import { testNode } from "../support/control-rig.js";
import {
  type ClusterNumber,
  clusterFamilies,
  clusterTimes,
  type Family,
  processCounters,
  processGauges,
  processTimes,
  quantiles,
} from "./control-families.js";
import {
  bytesField,
  doubleField,
  joined,
  messageField,
  slotsNamed,
  type Template,
  textField,
  wholeField,
  writeWhole,
} from "./message-template.js";

/** What one cluster of a simulated Envoy did in a second. */
export interface ClusterSecond {
  readonly active: number;
  /** Requests that ended, those that failed and those that its breaker refused among them. */
  readonly completed: number;
  readonly failed: number;
  readonly overflowed: number;
  readonly remaining: number;
  readonly meanMs: number;
}

/** The most that a number of a histogram or a load report may be. */
const countMax = 2 ** 14 - 1;

/** Whole numbers up to `countMax`, and milliseconds since 1970. */
const countBytes = 2;
const stampBytes = 6;

/** Bytes that gRPC puts before a message. */
export const headBytes = 5;

/** Extensions that an Envoy 1.40 lists in its node: with them it has 61 KB. */
const extensionCount = 516;

/** The name of a service's cluster. */
export function clusterName(index: number): string {
  return `service-${index}`;
}

/** Who a simulated Envoy is, as large as a real one says it. */
export function encodeNode(id: string): Uint8Array {
  const extensions = Array.from({ length: extensionCount }, (_, i) => ({
    name: `envoy.filters.simulated.number_${i}`,
    category: "envoy.filters.simulated_",
    typeUrls: [`envoy.extensions.filters.simulated.number.v3.Number${i}`],
  }));
  return toBinary(NodeSchema, create(NodeSchema, { ...testNode(id), extensions }));
}

/** The first message of a stream of statistics; its flush follows in the same message. */
export function encodeIdentifier(node: Uint8Array): Uint8Array {
  return messageField(1, [bytesField(1, node)]).bytes;
}

/** A flush of statistics, made once for all Envoys, whose numbers are written into their copies. */
export class FlushLayout {
  readonly #template: Template;
  readonly #stamps: readonly number[];
  readonly #clusters: readonly FlushSlots[];

  constructor(clusterCount: number) {
    const names = Array.from({ length: clusterCount }, (_, i) => clusterName(i));
    this.#template = joined([
      ...names.flatMap((name) =>
        clusterFamilies.map((one) => familyOf(one, { before: `cluster.${name}.`, owner: name })),
      ),
      ...processCounters.map((name) => familyOf({ name, type: "counter", value: 1 })),
      ...processGauges.map((name) => familyOf({ name, type: "gauge", value: 1 })),
      ...names.flatMap((name) =>
        clusterTimes.map((times) => timesOf(`cluster.${name}.${times}`, name)),
      ),
      ...processTimes.map((name) => timesOf(name, "")),
    ]);
    this.#stamps = slotsNamed(this.#template, "stamp");
    this.#clusters = names.map((name) => flushSlots(this.#template, name));
  }

  /** Bytes of a flush, without the head that gRPC puts before it. */
  get byteCount(): number {
    return this.#template.bytes.length;
  }

  /** A copy with room for the head before it. */
  copy(): Buffer {
    return framed(this.#template.bytes);
  }

  /** Writes a second's numbers into a copy. */
  write(copy: Buffer, seconds: readonly ClusterSecond[], epochMs: number): void {
    const stamp = Buffer.alloc(stampBytes);
    writeWhole(stamp, { at: 0, byteCount: stampBytes }, epochMs);
    const low = stamp.readUInt32LE(0);
    const high = stamp.readUInt16LE(4);
    for (const at of this.#stamps) {
      copy.writeUInt32LE(low, headBytes + at);
      copy.writeUInt16LE(high, headBytes + at + 4);
    }
    for (const [i, slots] of this.#clusters.entries()) {
      const second = seconds[i];
      if (second !== undefined) writeCluster(copy, slots, second);
    }
  }
}

/** Places of one cluster's numbers in a flush. */
interface FlushSlots {
  readonly numbers: readonly { readonly of: ClusterNumber; readonly at: number }[];
  readonly counts: readonly number[];
  readonly sums: readonly number[];
  readonly quantiles: readonly number[];
}

const clusterNumbers: readonly ClusterNumber[] = [
  "active",
  "completed",
  "failed",
  "overflowed",
  "remaining",
];

function flushSlots(template: Template, cluster: string): FlushSlots {
  const at = (name: string): readonly number[] => slotsNamed(template, `${cluster} ${name}`);
  return {
    numbers: clusterNumbers.flatMap((of) => at(of).map((place) => ({ of, at: place }))),
    counts: at("count"),
    sums: at("sum"),
    quantiles: at("quantile"),
  };
}

/** Latencies lie evenly between half of the mean and one and a half of it. */
function writeCluster(copy: Buffer, slots: FlushSlots, second: ClusterSecond): void {
  const { completed, meanMs } = second;
  for (const { of, at } of slots.numbers) copy.writeDoubleLE(second[of], headBytes + at);
  for (const at of slots.counts) writeCount(copy, at, completed);
  for (const at of slots.sums) copy.writeDoubleLE(completed * meanMs, headBytes + at);
  for (const [i, at] of slots.quantiles.entries()) {
    const quantile = quantiles[i % quantiles.length] ?? 0;
    copy.writeDoubleLE(meanMs * (0.5 + quantile), headBytes + at);
  }
}

/** A load report of one Envoy, made once. */
export class LoadLayout {
  readonly #template: Template;
  readonly #clusters: readonly LoadSlots[];

  constructor(node: Uint8Array, clusterCount: number) {
    const names = Array.from({ length: clusterCount }, (_, i) => clusterName(i));
    this.#template = joined([bytesField(1, node), ...names.map(loadOf)]);
    this.#clusters = names.map((name) => {
      const at = (what: string): number => slotsNamed(this.#template, `${name} ${what}`)[0] ?? 0;
      return {
        succeeded: at("succeeded"),
        active: at("active"),
        failed: at("failed"),
        issued: at("issued"),
        dropped: at("dropped"),
      };
    });
  }

  get byteCount(): number {
    return this.#template.bytes.length;
  }

  /** A copy with the head that gRPC puts before it. */
  copy(): Buffer {
    return framed(this.#template.bytes);
  }

  /** Writes a second's numbers into a copy. */
  write(copy: Buffer, seconds: readonly ClusterSecond[]): void {
    for (const [i, slots] of this.#clusters.entries()) {
      const second = seconds[i];
      if (second === undefined) continue;
      const { active, completed, failed, overflowed } = second;
      writeCount(copy, slots.succeeded, completed - failed);
      writeCount(copy, slots.active, active);
      writeCount(copy, slots.failed, failed);
      writeCount(copy, slots.issued, completed);
      writeCount(copy, slots.dropped, overflowed);
    }
  }
}

/** Places of one cluster's numbers in a load report. */
type LoadSlots = Readonly<Record<"succeeded" | "active" | "failed" | "issued" | "dropped", number>>;

/** Source: envoy.config.endpoint.v3.ClusterStats and UpstreamLocalityStats. */
function loadOf(cluster: string): Template {
  const count = (field: number, what: string): Template =>
    wholeField(field, { value: 0, byteCount: countBytes, name: `${cluster} ${what}` });
  return messageField(2, [
    textField(1, cluster),
    messageField(2, [
      messageField(1, []),
      count(2, "succeeded"),
      count(3, "active"),
      count(4, "failed"),
      count(8, "issued"),
    ]),
    count(3, "dropped"),
    messageField(4, [wholeField(1, { value: 1, byteCount: 1 })]),
  ]);
}

/** Field numbers of metrics, and the types of families. Source: io.prometheus.client. */
const metricField = { gauge: 2, counter: 3, summary: 4, timestamp: 6 } as const;
const typeNumber = { counter: 0, gauge: 1, summary: 2 } as const;

/** @param owner whose numbers change; absent: nobody's */
function familyOf(
  { name, type, value }: Family,
  { before, owner }: { readonly before: string; readonly owner: string } = {
    before: "",
    owner: "",
  },
): Template {
  const slot = typeof value === "string" ? `${owner} ${value}` : undefined;
  const number = doubleField(1, typeof value === "string" ? 0 : value, slot);
  return family(`${before}${name}`, typeNumber[type], [
    messageField(metricField[type], [number]),
    stamp(),
  ]);
}

/** Times as quantiles. */
function timesOf(name: string, owner: string): Template {
  const count = wholeField(1, { value: 0, byteCount: countBytes, name: `${owner} count` });
  const byQuantile = quantiles.map((at) =>
    messageField(3, [doubleField(1, at), doubleField(2, 0, `${owner} quantile`)]),
  );
  const summary = [count, doubleField(2, 0, `${owner} sum`), ...byQuantile];
  return family(name, typeNumber.summary, [messageField(metricField.summary, summary), stamp()]);
}

/** One family of `StreamMetricsMessage.envoy_metrics`. A counter is what has no type. */
function family(name: string, type: number, metric: readonly Template[]): Template {
  const typed = type === 0 ? [] : [wholeField(3, { value: type, byteCount: 1 })];
  return messageField(2, [textField(1, name), ...typed, messageField(4, metric)]);
}

function stamp(): Template {
  return wholeField(metricField.timestamp, { value: 0, byteCount: stampBytes, name: "stamp" });
}

/** As `writeWhole` for `countBytes`, of which a flush has a thousand. */
function writeCount(copy: Buffer, at: number, count: number): void {
  if (count > countMax) throw new Error(`${count} does not fit into ${countBytes} bytes`);
  copy[headBytes + at] = 128 | (count & 127);
  copy[headBytes + at + 1] = count >> 7;
}

/** A copy of a message with the head that gRPC puts before it. */
export function framed(message: Uint8Array): Buffer {
  const bytes = Buffer.alloc(headBytes + message.length);
  bytes.writeUInt32BE(message.length, 1);
  bytes.set(message, headBytes);
  return bytes;
}
