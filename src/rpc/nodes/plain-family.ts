import { WireType } from "@bufbuild/protobuf/wire";
import { fieldTag } from "../codec/field-reader.js";
import { metricTags, type RawMetric, statisticQuantiles, totalTags } from "./prometheus-reader.js";

const { Varint, LengthDelimited, Bit64 } = WireType;

/** Fields of a family. Source: io.prometheus.client.MetricFamily. */
export const familyTags = {
  name: fieldTag(1, LengthDelimited),
  type: fieldTag(3, Varint),
  metric: fieldTag(4, LengthDelimited),
} as const;

/** Tags and sizes of a number with its field, and of a quantile with its field. */
const numberTag = fieldTag(1, Bit64);
const secondTag = fieldTag(2, Bit64);
const numberBytes = 9;
const quantileBytes = 2 + 2 * numberBytes;

/** Size of milliseconds since 1970 with their field: seven bits per byte. */
const stampBytes = 7;

/** Number of quantiles that are kept. The others of a cluster's ten are not used. */
const quantilesMax = 2;

/**
 * Reads a family in the form of nearly all that Envoy writes: a name, possibly a type, and one
 * metric without labels that is a number or quantiles, with a time. A thousand Envoys send a
 * hundred thousand of them each second, so it reads them in place and creates no objects. A test of
 * random families compares it with `readStatistic`.
 */
export class PlainFamily {
  readonly #quantiles = Array.from({ length: quantilesMax }, () => ({ at: 0, value: 0 }));
  readonly #summary: OpenSummary = { count: 0, sum: 0, quantiles: [] };
  readonly #metric: OpenMetric = {
    labels: [],
    gauge: undefined,
    counter: undefined,
    summary: undefined,
    histogram: undefined,
    timestampMs: 0,
  };
  /** The last timestamp, as bytes and as a value: all families of a flush have the same one. */
  #stampLow = 0;
  #stampHigh = 0;
  #stampMs = 0;

  /**
   * Reads the rest of a family, after its name.
   *
   * @returns the metric, valid until the next call; undefined: the family has another form
   */
  read(bytes: DataView, nameEnd: number, end: number): RawMetric | undefined {
    let at = nameEnd;
    if (end - at > 4 && bytes.getUint8(at) === familyTags.type && bytes.getUint8(at + 1) < 128) {
      at += 2;
    }
    if (end - at < 4 || bytes.getUint8(at) !== familyTags.metric) return undefined;
    const start = startOfPart(bytes, at + 1, end);
    // The metric and then its value start with their tags.
    if (start === 0 || end - start < 2) return undefined;
    const valueStart = startOfPart(bytes, start + 1, 0);
    const valueEnd = valueStart === 0 ? 0 : valueStart + partBytes(bytes, start + 1);
    if (valueStart === 0 || valueEnd > end || !this.#readStamp(bytes, valueEnd, end)) {
      return undefined;
    }
    const metric = this.#metric;
    metric.gauge = undefined;
    metric.counter = undefined;
    metric.summary = undefined;
    const tag = bytes.getUint8(start);
    if (tag === metricTags.summary) {
      if (!this.#readSummary(bytes, valueStart, valueEnd)) return undefined;
      metric.summary = this.#summary;
      return metric;
    }
    const isNumber =
      valueEnd - valueStart === numberBytes && bytes.getUint8(valueStart) === numberTag;
    if (!isNumber) return undefined;
    const value = bytes.getFloat64(valueStart + 1, true);
    if (tag === metricTags.gauge) metric.gauge = value;
    else if (tag === metricTags.counter) metric.counter = value;
    else return undefined;
    return metric;
  }

  #readStamp(bytes: DataView, start: number, end: number): boolean {
    if (start === end) {
      this.#metric.timestampMs = 0;
      return true;
    }
    if (end - start !== stampBytes || bytes.getUint8(start) !== metricTags.timestamp) return false;
    const low = bytes.getInt32(start + 1, true);
    const high = bytes.getUint16(start + 5, true);
    if (low !== this.#stampLow || high !== this.#stampHigh) {
      // Of the six bytes of this varint, all but the last have the continuation bit.
      if ((low & 0x80808080) !== (0x80808080 | 0) || (high & 0x8080) !== 0x80) return false;
      this.#stampLow = low;
      this.#stampHigh = high;
      const rest = (high & 127) + (high >> 8) * 128;
      this.#stampMs = sevenBits(low) + rest * 2 ** 28;
    }
    this.#metric.timestampMs = this.#stampMs;
    return true;
  }

  /** Reads a count, a sum and quantiles, in this order. */
  #readSummary(bytes: DataView, start: number, end: number): boolean {
    const summary = this.#summary;
    if (end - start < 2 || bytes.getUint8(start) !== totalTags.count) return false;
    let at = start + 1;
    let scale = 1;
    summary.count = 0;
    for (;;) {
      if (at >= end || scale > 2 ** 35) return false;
      const byte = bytes.getUint8(at);
      at += 1;
      summary.count += (byte & 127) * scale;
      if (byte < 128) break;
      scale *= 128;
    }
    if (end - at < numberBytes || bytes.getUint8(at) !== totalTags.sum) return false;
    summary.sum = bytes.getFloat64(at + 1, true);
    at += numberBytes;
    if ((end - at) % quantileBytes !== 0) return false;
    let keptCount = 0;
    for (; at < end; at += quantileBytes) {
      const isPlain =
        bytes.getUint16(at) === plainQuantileHead &&
        bytes.getUint8(at + 2) === numberTag &&
        bytes.getUint8(at + 2 + numberBytes) === secondTag;
      if (!isPlain) return false;
      const quantile = bytes.getFloat64(at + 3, true);
      if (quantile !== statisticQuantiles.min && quantile !== statisticQuantiles.median) continue;
      const kept = this.#quantiles[keptCount];
      if (kept === undefined) return false;
      kept.at = quantile;
      kept.value = bytes.getFloat64(at + 3 + numberBytes, true);
      summary.quantiles[keptCount] = kept;
      keptCount += 1;
    }
    // Not shortened before, because V8 would then create another array each time.
    if (summary.quantiles.length > keptCount) summary.quantiles.length = keptCount;
    return true;
  }
}

interface OpenSummary {
  count: number;
  sum: number;
  readonly quantiles: { at: number; value: number }[];
}

type OpenMetric = { -readonly [field in keyof RawMetric]: RawMetric[field] };

/** The field of a quantile and its length. */
const plainQuantileHead = totalTags.part * 256 + 2 * numberBytes;

/** Combines the seven low bits of each of four bytes. */
function sevenBits(bytes: number): number {
  const low = (bytes & 127) | ((bytes >> 1) & 0x3f80);
  return low | ((bytes >> 2) & 0x1fc000) | ((bytes >> 3) & 0xfe00000);
}

/**
 * Returns the start of a part whose length is here, in one or two bytes. 0 if it has another form.
 *
 * @param end the required end of the part; 0: any
 */
function startOfPart(bytes: DataView, at: number, end: number): number {
  if (at + 1 >= bytes.byteLength) return 0;
  const isLong = bytes.getUint8(at) > 127;
  if (isLong && bytes.getUint8(at + 1) > 127) return 0;
  const start = at + (isLong ? 2 : 1);
  return end === 0 || start + partBytes(bytes, at) === end ? start : 0;
}

function partBytes(bytes: DataView, at: number): number {
  const first = bytes.getUint8(at);
  return first > 127 ? (first & 127) + bytes.getUint8(at + 1) * 128 : first;
}
