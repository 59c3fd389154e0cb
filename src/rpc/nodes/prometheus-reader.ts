import { WireType } from "@bufbuild/protobuf/wire";
import { type FieldReader, fieldTag, LastPart, passTwoParts } from "../codec/field-reader.js";

/** The fields of a metric that Envoy's statistics use. Undefined: not in the message. */
export interface RawMetric {
  readonly labels: readonly RawLabel[];
  readonly gauge: number | undefined;
  readonly counter: number | undefined;
  readonly summary: RawSummary | undefined;
  readonly histogram: RawHistogram | undefined;
  /** Milliseconds since 1970; 0: not stated. */
  readonly timestampMs: number;
}

interface RawLabel {
  readonly name: string;
  readonly value: string;
}

interface RawSummary {
  readonly count: number;
  readonly sum: number;
  readonly quantiles: readonly { readonly at: number; readonly value: number }[];
}

/** Counts by bucket, each including all lower ones. */
interface RawHistogram {
  readonly count: number;
  readonly sum: number;
  readonly buckets: readonly { readonly upTo: number; readonly count: number }[];
}

const { Varint, Bit64, LengthDelimited } = WireType;

/** Fields of a metric. Source: io.prometheus.client.Metric. */
export const metricTags = {
  label: fieldTag(1, LengthDelimited),
  gauge: fieldTag(2, LengthDelimited),
  counter: fieldTag(3, LengthDelimited),
  summary: fieldTag(4, LengthDelimited),
  timestamp: fieldTag(6, Varint),
  histogram: fieldTag(7, LengthDelimited),
} as const;

/** Fields of its parts. */
const valueTag = fieldTag(1, Bit64);

/** Fields of a summary, and of a histogram. */
export const totalTags = {
  count: fieldTag(1, Varint),
  sum: fieldTag(2, Bit64),
  part: fieldTag(3, LengthDelimited),
} as const;
const quantileTags = { at: fieldTag(1, Bit64), value: fieldTag(2, Bit64) } as const;
const bucketTags = { count: fieldTag(1, Varint), upTo: fieldTag(2, Bit64) } as const;

/**
 * Reads a metric of a family by hand, at the reader's position. An Envoy has 30 buckets and
 * quantiles per cluster, and the general decoder creates a message for each, which was most of the
 * cost of an Envoy per second. A test of random families compares the two.
 *
 * Source: io.prometheus.client.Metric.
 *
 * @throws Error for bytes that are not such a message
 */
export function readMetric(reader: FieldReader): RawMetric {
  return reader.tryPart(readPlain) ?? readAny(reader);
}

/** The minimum and the median. The others of a cluster's ten quantiles are not used. */
export const statisticQuantiles = { min: 0, median: 0.5 } as const;

/** Like `readMetric`, but only quantiles of `statisticQuantiles` and those in unusual form. */
export function readStatistic(reader: FieldReader): RawMetric {
  return reader.tryPart(readPlain) ?? readAny(reader, passUnwantedQuantile);
}

function passUnwantedQuantile(bytes: Buffer, start: number, end: number): true | undefined {
  if (!isPlainQuantile(bytes, start, end)) return undefined;
  const at = bytes.readDoubleLE(start + 1);
  return at === statisticQuantiles.min || at === statisticQuantiles.median ? undefined : true;
}

type PassQuantile = typeof passUnwantedQuantile;

/** Reads a number and a time, as nearly all metrics are. Undefined for any other metric. */
function readPlain(bytes: Buffer, start: number, end: number): RawMetric | undefined {
  const tag = bytes[start];
  const valueEnd = start + 2 + valueBytes;
  if (valueEnd > end || bytes[start + 1] !== valueBytes || bytes[start + 2] !== valueTag) {
    return undefined;
  }
  const timestampMs = valueEnd === end ? 0 : plainTimeOf(bytes, valueEnd, end);
  if (timestampMs === undefined) return undefined;
  if (tag !== metricTags.gauge && tag !== metricTags.counter) return undefined;
  const value = bytes.readDoubleLE(start + 3);
  const gauge = tag === metricTags.gauge ? value : undefined;
  const counter = tag === metricTags.counter ? value : undefined;
  const labels = noLabels;
  return { labels, gauge, counter, summary: undefined, histogram: undefined, timestampMs };
}

/** Bytes of a number with its field. */
const valueBytes = 9;

/** Reads the time at the end of a metric. Undefined if there are other or further fields. */
function plainTimeOf(bytes: Buffer, start: number, end: number): number | undefined {
  if (bytes[start] !== metricTags.timestamp || end - start > 8) return undefined;
  let timeMs = 0;
  let scale = 1;
  for (let at = start + 1; at < end; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte > 127 === (at === end - 1)) return undefined;
    timeMs += (byte & 127) * scale;
    scale *= 128;
  }
  return timeMs;
}

function readAny(reader: FieldReader, pass?: PassQuantile): RawMetric {
  let labels: RawLabel[] | undefined;
  let gauge: number | undefined;
  let counter: number | undefined;
  let summary: RawSummary | undefined;
  let histogram: RawHistogram | undefined;
  let timestampMs = 0;
  const outerEnd = reader.enter();
  while (reader.next()) {
    const { tag } = reader;
    if (tag === metricTags.timestamp) timestampMs = reader.whole();
    else if (tag === metricTags.gauge) gauge = readValue(reader);
    else if (tag === metricTags.counter) counter = readValue(reader);
    else if (tag === metricTags.summary) summary = readSummary(reader, pass);
    else if (tag === metricTags.histogram) histogram = readHistogram(reader);
    else if (tag === metricTags.label) {
      labels ??= [];
      labels.push(readLabel(reader));
    } else reader.skip();
  }
  reader.leave(outerEnd);
  return { labels: labels ?? noLabels, gauge, counter, summary, histogram, timestampMs };
}

const noLabels: readonly RawLabel[] = [];

/** Source: io.prometheus.client.LabelPair. */
function readLabel(reader: FieldReader): RawLabel {
  const name = new LastPart();
  const value = new LastPart();
  passTwoParts(reader, name, value);
  return { name: name.text(reader), value: value.text(reader) };
}

/** Reads the value of a gauge or a counter. */
function readValue(reader: FieldReader): number {
  let value = 0;
  const outerEnd = reader.enter();
  while (reader.next()) {
    if (reader.tag === valueTag) value = reader.double();
    else reader.skip();
  }
  reader.leave(outerEnd);
  return value;
}

function readSummary(reader: FieldReader, pass: PassQuantile | undefined): RawSummary {
  let count = 0;
  let sum = 0;
  const quantiles: RawSummary["quantiles"][number][] = [];
  const outerEnd = reader.enter();
  while (reader.next()) {
    if (reader.tag === totalTags.part) {
      const isPassed = pass !== undefined && reader.tryPart(pass) !== undefined;
      if (!isPassed) quantiles.push(readQuantile(reader));
    } else if (reader.tag === totalTags.count) count = reader.whole();
    else if (reader.tag === totalTags.sum) sum = reader.double();
    else reader.skip();
  }
  reader.leave(outerEnd);
  return { count, sum, quantiles };
}

function readQuantile(reader: FieldReader): RawSummary["quantiles"][number] {
  return reader.tryPart(readPlainQuantile) ?? readAnyQuantile(reader);
}

function readPlainQuantile(bytes: Buffer, start: number, end: number) {
  if (!isPlainQuantile(bytes, start, end)) return undefined;
  return { at: bytes.readDoubleLE(start + 1), value: bytes.readDoubleLE(start + 1 + valueBytes) };
}

/** Whether it consists of both of its numbers, in their order. */
function isPlainQuantile(bytes: Buffer, start: number, end: number): boolean {
  const middle = start + valueBytes;
  return (
    end - middle === valueBytes &&
    bytes[start] === quantileTags.at &&
    bytes[middle] === quantileTags.value
  );
}

function readAnyQuantile(reader: FieldReader): RawSummary["quantiles"][number] {
  let at = 0;
  let value = 0;
  const outerEnd = reader.enter();
  while (reader.next()) {
    if (reader.tag === quantileTags.at) at = reader.double();
    else if (reader.tag === quantileTags.value) value = reader.double();
    else reader.skip();
  }
  reader.leave(outerEnd);
  return { at, value };
}

function readHistogram(reader: FieldReader): RawHistogram {
  let count = 0;
  let sum = 0;
  const buckets: RawHistogram["buckets"][number][] = [];
  const outerEnd = reader.enter();
  while (reader.next()) {
    if (reader.tag === totalTags.part) buckets.push(readBucket(reader));
    else if (reader.tag === totalTags.count) count = reader.whole();
    else if (reader.tag === totalTags.sum) sum = reader.double();
    else reader.skip();
  }
  reader.leave(outerEnd);
  return { count, sum, buckets };
}

function readBucket(reader: FieldReader): RawHistogram["buckets"][number] {
  let upTo = 0;
  let count = 0;
  const outerEnd = reader.enter();
  while (reader.next()) {
    if (reader.tag === bucketTags.count) count = reader.whole();
    else if (reader.tag === bucketTags.upTo) upTo = reader.double();
    else reader.skip();
  }
  reader.leave(outerEnd);
  return { upTo, count };
}
