import { decodeBase64 } from "../base/base64.js";
import { isLeanJson } from "../base/json-count.js";

/** Utilization that a backend reports, each a ratio above 0; undefined if it is not reported. */
export interface OrcaReport {
  /** Of the CPU that it may use; may exceed 1. */
  readonly cpuRatio: number | undefined;
  /** Of the memory that it may use. */
  readonly memoryRatio: number | undefined;
  /** Of the resource that the application considers its scarcest; may exceed 1. */
  readonly applicationRatio: number | undefined;
}

/** The response header of a report. */
export const orcaHeader = "endpoint-load-metrics";

/** Maximum length of a header that is read, in characters; named metrics may make it long. */
export const orcaCharactersMax = 8_192;

/** Maximum accepted ratio: no backend uses a hundred times what it has. */
export const orcaRatioMax = 100;

/**
 * Parses a report in one of its three forms. Returns undefined for any other text; never throws.
 *
 * - `TEXT cpu_utilization=0.7, mem_utilization:0.8, named_metrics.kv=0.3`
 * - `JSON {"cpu_utilization": 0.7}`, names in camelCase too, as protobuf's JSON allows
 * - `BIN <the message xds.data.orca.v3.OrcaLoadReport in Base64>`
 *
 * A header without such a prefix is read as text, as by older Envoys. Zero counts as not reported,
 * because the message does not distinguish it from an absent field. So do negative ratios.
 *
 * Source: xds/data/orca/v3/orca_load_report.proto; Envoy's source/common/orca/orca_parser.cc.
 */
export function parseOrcaReport(header: string): OrcaReport | undefined {
  if (header.length > orcaCharactersMax) return undefined;
  const text = header.trim();
  const [, form = "", rest = ""] = /^([A-Z]+)\s+(.*)$/s.exec(text) ?? [];
  switch (form) {
    case "JSON":
      return parseJson(rest);
    case "BIN":
      return parseBinary(rest);
    case "TEXT":
      return parseText(rest);
    case "":
      return parseText(text);
    default:
      return undefined;
  }
}

/** Figures that a service reports. */
export interface OrcaFigures {
  /** Utilization of its scarcest resource, from 0; 1 is full. */
  readonly applicationRatio: number;
  /** Utilization of the CPU that it may use; absent: not known. */
  readonly cpuRatio?: number | undefined;
  /** Utilization of the memory that it may use; absent: not known. */
  readonly memoryRatio?: number | undefined;
  /** Requests accepted per second, from 0. */
  readonly requestsPerSecond: number;
  /** Other metrics, with names of letters, digits and `_`. */
  readonly named: Readonly<Record<string, number>>;
}

/**
 * Formats a report as text, which `parseOrcaReport` and Envoy's parser read. A value that is not a
 * finite number from 0 up is left out.
 *
 * Example: `TEXT application_utilization=0.75, rps_fractional=120.5, named_metrics.in_flight=15`.
 */
export function formatOrcaReport(figures: OrcaFigures): string {
  const { applicationRatio, cpuRatio, memoryRatio, requestsPerSecond, named } = figures;
  const pairs: readonly (readonly [name: string, value: number | undefined])[] = [
    [applicationName, applicationRatio],
    [cpuName, cpuRatio],
    [memoryName, memoryRatio],
    ["rps_fractional", requestsPerSecond],
    ...Object.entries(named).map(([name, value]) => [`named_metrics.${name}`, value] as const),
  ];
  const stated = pairs.flatMap(([name, value]) =>
    value === undefined || !(value >= 0) || value === Number.POSITIVE_INFINITY
      ? []
      : [`${name}=${Math.round(value * 1_000) / 1_000}`],
  );
  return `TEXT ${stated.join(", ")}`;
}

type Ratios = ReadonlyMap<string, number>;

const cpuName = "cpu_utilization";
const memoryName = "mem_utilization";
const applicationName = "application_utilization";

function reportOf(ratios: Ratios): OrcaReport {
  return {
    cpuRatio: believable(ratios.get(cpuName)),
    memoryRatio: believable(ratios.get(memoryName)),
    applicationRatio: believable(ratios.get(applicationName)),
  };
}

function believable(ratio: number | undefined): number | undefined {
  return ratio !== undefined && ratio > 0 && ratio <= orcaRatioMax ? ratio : undefined;
}

/** A number as programs print it: no hexadecimal, no infinity, no empty text. */
const decimal = /^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$/;

function parseDecimal(text: string): number | undefined {
  return decimal.test(text) ? Number(text) : undefined;
}

/** Parses pairs separated by commas. As in Envoy, a bad or repeated one invalidates the report. */
function parseText(text: string): OrcaReport | undefined {
  const ratios = new Map<string, number>();
  for (const pair of text.split(",")) {
    const [, name, value = ""] = /^\s*([^=:\s]+)\s*[=:]\s*(\S+)\s*$/.exec(pair) ?? [];
    const ratio = parseDecimal(value);
    if (name === undefined || ratio === undefined || ratios.has(name)) return undefined;
    ratios.set(name, ratio);
  }
  return reportOf(ratios);
}

const jsonNames: readonly (readonly [name: string, camelName: string])[] = [
  [cpuName, "cpuUtilization"],
  [memoryName, "memUtilization"],
  [applicationName, "applicationUtilization"],
];

function parseJson(text: string): OrcaReport | undefined {
  if (!isLeanJson(text)) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The text comes from a backend, and the error would quote it.
    return undefined;
  }
  if (!(value instanceof Object) || Array.isArray(value)) return undefined;
  const fields: ReadonlyMap<string, unknown> = new Map(Object.entries(value));
  const ratios = new Map<string, number>();
  for (const [name, camelName] of jsonNames) {
    const field = fields.get(name) ?? fields.get(camelName);
    const ratio = typeof field === "string" ? parseDecimal(field) : field;
    if (typeof ratio === "number") ratios.set(name, ratio);
  }
  return reportOf(ratios);
}

/** Numbers of the fields of OrcaLoadReport that are read; all are doubles. */
const fieldNames: ReadonlyMap<number, string> = new Map([
  [1, cpuName],
  [2, memoryName],
  [9, applicationName],
]);

/** Source: protobuf encoding, "Message Structure". */
const wireTypes = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

function parseBinary(text: string): OrcaReport | undefined {
  const bytes = decodeBase64(text);
  if (bytes === undefined) return undefined;
  const view = new DataView(bytes.buffer);
  const ratios = new Map<string, number>();
  let at = 0;
  while (at < bytes.length) {
    const tag = readVarint(bytes, at);
    if (tag === undefined || tag.value < 8 || tag.value >= 2 ** 32) return undefined;
    const wireType = tag.value % 8;
    const name = fieldNames.get(Math.floor(tag.value / 8));
    const end = endOfField(bytes, { at: tag.end, wireType });
    if (end === undefined || end > bytes.length) return undefined;
    // The last value counts, as everywhere in protobuf.
    if (name !== undefined && wireType === wireTypes.fixed64) {
      ratios.set(name, view.getFloat64(tag.end, true));
    }
    at = end;
  }
  return reportOf(ratios);
}

/** Returns where a field's value ends, maybe after the last byte; groups are not read. */
function endOfField(
  bytes: Uint8Array,
  { at, wireType }: { readonly at: number; readonly wireType: number },
): number | undefined {
  switch (wireType) {
    case wireTypes.varint:
      return readVarint(bytes, at)?.end;
    case wireTypes.fixed64:
      return at + 8;
    case wireTypes.bytes: {
      const length = readVarint(bytes, at);
      return length === undefined ? undefined : length.end + length.value;
    }
    case wireTypes.fixed32:
      return at + 4;
    default:
      return undefined;
  }
}

interface Varint {
  /** Inexact above 2^53, where it is too large for any use here. */
  readonly value: number;
  readonly end: number;
}

/** Reads at most ten bytes. Returns undefined for a varint that does not end. */
function readVarint(bytes: Uint8Array, start: number): Varint | undefined {
  let value = 0;
  for (let i = 0; i < 10; i += 1) {
    const byte = bytes[start + i];
    if (byte === undefined) return undefined;
    value += (byte & 0x7f) * 2 ** (7 * i);
    if (byte < 0x80) return { value, end: start + i + 1 };
  }
  return undefined;
}
