import { WireType } from "@bufbuild/protobuf/wire";
import type { FieldReader } from "./field-reader.js";

/** One metric of a family, as far as statistics of Envoy use them; absent: the message has none. */
export interface RawMetric {
  readonly labels: readonly RawLabel[];
  readonly gauge: number | undefined;
  readonly counter: number | undefined;
  readonly summary: RawSummary | undefined;
  readonly histogram: RawHistogram | undefined;
  /** Milliseconds since 1970; 0: not said. */
  readonly timestampMs: number;
}

/** A label. */
export interface RawLabel {
  readonly name: string;
  readonly value: string;
}

/** Quantiles. */
export interface RawSummary {
  readonly count: number;
  readonly sum: number;
  readonly quantiles: readonly { readonly at: number; readonly value: number }[];
}

/** Counts by bucket, each with all lower ones included. */
export interface RawHistogram {
  readonly count: number;
  readonly sum: number;
  readonly buckets: readonly { readonly upTo: number; readonly count: number }[];
}

/**
 * A metric of a family, read by hand where the reader stands: an Envoy has 30 buckets and quantiles
 * a cluster, and the general decoder makes a message of each, which was most of what an Envoy a
 * second costs. Held equal to it by a test of random families.
 *
 * Source: io.prometheus.client.Metric.
 *
 * @throws Error for bytes that are no such message
 */
export function readMetric(reader: FieldReader): RawMetric {
  const labels: RawLabel[] = [];
  let gauge: number | undefined;
  let counter: number | undefined;
  let summary: RawSummary | undefined;
  let histogram: RawHistogram | undefined;
  let timestampMs = 0;
  reader.eachFieldOfPart((field, type) => {
    if (field === 6 && type === WireType.Varint) timestampMs = reader.whole();
    else if (type !== WireType.LengthDelimited) return false;
    else if (field === 1) labels.push(readLabel(reader));
    else if (field === 2) gauge = readValue(reader);
    else if (field === 3) counter = readValue(reader);
    else if (field === 4) summary = readSummary(reader);
    else if (field === 7) histogram = readHistogram(reader);
    else return false;
    return true;
  });
  return { labels, gauge, counter, summary, histogram, timestampMs };
}

function readLabel(reader: FieldReader): RawLabel {
  let name = "";
  let value = "";
  reader.eachFieldOfPart((field, type) => {
    if (type !== WireType.LengthDelimited) return false;
    if (field === 1) name = reader.text();
    else if (field === 2) value = reader.text();
    else return false;
    return true;
  });
  return { name, value };
}

/** A gauge's or a counter's. */
function readValue(reader: FieldReader): number {
  let value = 0;
  reader.eachFieldOfPart((field, type) => {
    if (field !== 1 || type !== WireType.Bit64) return false;
    value = reader.double();
    return true;
  });
  return value;
}

function readSummary(reader: FieldReader): RawSummary {
  const quantiles: { at: number; value: number }[] = [];
  const { count, sum } = readTotals(reader, () => {
    let at = 0;
    let value = 0;
    reader.eachFieldOfPart((field, type) => {
      if (type !== WireType.Bit64) return false;
      if (field === 1) at = reader.double();
      else if (field === 2) value = reader.double();
      else return false;
      return true;
    });
    quantiles.push({ at, value });
  });
  return { count, sum, quantiles };
}

function readHistogram(reader: FieldReader): RawHistogram {
  const buckets: { upTo: number; count: number }[] = [];
  const totals = readTotals(reader, () => {
    let upTo = 0;
    let count = 0;
    reader.eachFieldOfPart((field, type) => {
      if (field === 1 && type === WireType.Varint) count = reader.whole();
      else if (field === 2 && type === WireType.Bit64) upTo = reader.double();
      else return false;
      return true;
    });
    buckets.push({ upTo, count });
  });
  return { ...totals, buckets };
}

/** What summaries and histograms have in common: two totals, and parts in field 3. */
function readTotals(
  reader: FieldReader,
  readPart: () => void,
): { readonly count: number; readonly sum: number } {
  let count = 0;
  let sum = 0;
  reader.eachFieldOfPart((field, type) => {
    if (field === 1 && type === WireType.Varint) count = reader.whole();
    else if (field === 2 && type === WireType.Bit64) sum = reader.double();
    else if (field === 3 && type === WireType.LengthDelimited) readPart();
    else return false;
    return true;
  });
  return { count, sum };
}
