import { ServiceError } from "../../core/base/errors.js";
import { isLeanJson, type JsonBounds } from "../../core/base/json-count.js";
import { followJsonPointer } from "../../core/base/json-pointer.js";
import { ReadingSum, type SignalReadings } from "./signal-readings.js";

/** How the keys of a response are identified. */
export interface KeyedBy {
  /** The label that names the key. Undefined: all series make one reading. */
  readonly by: string | undefined;
  /** Maximum number of keys. */
  readonly keysMax: number;
}

/**
 * Reads Prometheus's response to an instant query: a scalar, or a vector whose series are summed
 * up.
 *
 * @throws ServiceError SIGNAL_REFUSED, SIGNAL_MALFORMED, SIGNAL_EMPTY, SIGNAL_TOO_LARGE
 *
 * Source: Prometheus, "HTTP API": instant queries, expression query result formats.
 */
export function readPrometheusAnswer(text: string, { by, keysMax }: KeyedBy): SignalReadings {
  const answer = fieldsOf(parseJson(text));
  if (answer.get("status") === "error") {
    throw new ServiceError("SIGNAL_REFUSED", "Prometheus returned an error for the query.");
  }
  const data = fieldsOf(answer.get("data"));
  const result = data.get("result");
  const sum = new ReadingSum(by === undefined ? undefined : keysMax);
  if (data.get("resultType") === "scalar") {
    sum.add(sampleValue(result), undefined);
  } else if (data.get("resultType") === "vector" && Array.isArray(result)) {
    for (const item of result) {
      const series = fieldsOf(item);
      const key = by === undefined ? undefined : fieldsOf(series.get("metric")).get(by);
      sum.add(sampleValue(series.get("value")), typeof key === "string" ? key : undefined);
    }
  } else {
    throw new ServiceError("SIGNAL_MALFORMED", "The query returned neither a scalar nor a vector.");
  }
  return someOf(sum);
}

/**
 * Reads a JSON document: a number at the pointer, or an object with a number per key.
 *
 * @param keysMax maximum number of keys; undefined: only a single number is valid
 * @throws ServiceError SIGNAL_MALFORMED, SIGNAL_EMPTY, SIGNAL_TOO_LARGE
 */
export function readJsonAnswer(
  text: string,
  { pointer, keysMax }: { readonly pointer: readonly string[]; readonly keysMax?: number },
): SignalReadings {
  const found = followJsonPointer(parseJson(text), pointer);
  if (found === undefined) throw new ServiceError("SIGNAL_EMPTY", "The pointer leads to nothing.");
  if (typeof found === "number") return someOf(sumOf([[undefined, found]], undefined));
  if (typeof found !== "object" || !found || Array.isArray(found)) {
    throw new ServiceError("SIGNAL_MALFORMED", "The pointer does not lead to a number.");
  }
  if (keysMax === undefined) {
    const words = "The pointer leads to an object, and the limit is not split by keys.";
    throw new ServiceError("SIGNAL_MALFORMED", words);
  }
  return someOf(sumOf(Object.entries(found), keysMax));
}

/**
 * Returns the readings of a sum.
 *
 * @throws ServiceError SIGNAL_EMPTY if nothing was added
 */
export function someOf(sum: ReadingSum): SignalReadings {
  const { readings } = sum;
  if (readings === undefined) throw new ServiceError("SIGNAL_EMPTY");
  return readings;
}

/** Parses a number as programs write it; NaN if it is not one. Example: `1.5e+06`. */
export function parseReading(text: string): number {
  return /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(text) ? Number(text) : Number.NaN;
}

function sumOf(
  entries: readonly (readonly [string | undefined, unknown])[],
  keysMax: number | undefined,
): ReadingSum {
  const sum = new ReadingSum(keysMax);
  for (const [key, value] of entries) if (typeof value === "number") sum.add(value, key);
  return sum;
}

/** Reads a pair of a time and a number as text. */
function sampleValue(sample: unknown): number {
  const value: unknown = Array.isArray(sample) ? sample[1] : undefined;
  return typeof value === "string" ? parseReading(value) : Number.NaN;
}

/**
 * Bounds of a response, enough for two thousand series with one label each. Objects with distinct
 * member names take `JSON.parse` the longest.
 */
const answerMax: JsonBounds = { containersMax: 8_192, valuesMax: 12_288 };

function parseJson(text: string): unknown {
  if (!isLeanJson(text, answerMax)) {
    throw new ServiceError(
      "SIGNAL_TOO_LARGE",
      "The document has too many lists and objects for its length.",
    );
  }
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new ServiceError("SIGNAL_MALFORMED", "The document is not JSON.", { cause });
  }
}

/** The members of an object. Empty if it is not an object. */
function fieldsOf(value: unknown): ReadonlyMap<string, unknown> {
  const isObject = typeof value === "object" && value && !Array.isArray(value);
  return new Map(isObject ? Object.entries(value) : []);
}
