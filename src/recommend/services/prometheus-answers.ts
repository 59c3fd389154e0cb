import { ServiceError } from "../../core/base/errors.js";
import { isLeanJson } from "../../core/base/json-count.js";

/** Times of a range query, from the first to the last at equal intervals. */
export interface QueryRange {
  readonly startMs: number;
  readonly endMs: number;
  readonly stepMs: number;
}

/** Maximum number of steps in a range query. Prometheus itself refuses more than 11,000. */
export const rangeStepsMax = 10_000;

/** Maximum number of series in a query. */
export const vectorSeriesMax = 2_000;

/** One series of an instant query. */
export interface VectorSample {
  readonly labels: ReadonlyMap<string, string>;
  readonly value: number;
}

/** One series of a range query: a value for each step, NaN if there is none. */
export interface RangeSeries {
  readonly labels: ReadonlyMap<string, string>;
  readonly values: readonly number[];
}

/**
 * Reads the response to a range query of one series: a value for each step, NaN if there is none.
 * Infinite values count as missing.
 *
 * @throws ServiceError SIGNAL_REFUSED, SIGNAL_MALFORMED, SIGNAL_TOO_LARGE
 */
export function readRange(text: string, range: QueryRange): readonly number[] {
  const [first, ...others] = readMatrix(text, range);
  if (first === undefined) return emptySteps(range);
  if (others.length === 0) return first.values;
  const count = others.length + 1;
  throw malformed(`The query returned ${count} series instead of one: use sum() or max().`);
}

/**
 * Reads the response to a range query with any number of series.
 *
 * @throws ServiceError SIGNAL_REFUSED, SIGNAL_MALFORMED, SIGNAL_TOO_LARGE
 *
 * Source: Prometheus, "HTTP API": range queries, range vectors.
 */
export function readMatrix(text: string, range: QueryRange): readonly RangeSeries[] {
  const { type, result } = readData(text);
  if (type !== "matrix") throw malformed(`The result is a ${type}, and not a matrix.`);
  refuseMany(result);
  return result.map((one) => ({ labels: readLabels(one), values: readSteps(one, range) }));
}

function emptySteps({ startMs, endMs, stepMs }: QueryRange): number[] {
  return new Array<number>(Math.floor((endMs - startMs) / stepMs) + 1).fill(Number.NaN);
}

function readSteps(series: unknown, range: QueryRange): readonly number[] {
  const { startMs, stepMs } = range;
  const values = emptySteps(range);
  const samples = fieldOf(series, "values");
  if (!Array.isArray(samples)) throw malformed("A series has no list of values.");
  let lastMs = Number.NEGATIVE_INFINITY;
  for (const sample of samples) {
    const { timeMs, value } = readSample(sample);
    if (timeMs <= lastMs) throw malformed("The times of a series do not rise.");
    lastMs = timeMs;
    const index = Math.round((timeMs - startMs) / stepMs);
    const isOnStep = Math.abs(timeMs - startMs - index * stepMs) <= timeToleranceMs;
    if (!isOnStep || index < 0 || index >= values.length) {
      throw malformed("A value has a time that was not asked for.");
    }
    if (Number.isFinite(value)) values[index] = value;
  }
  return values;
}

/**
 * Reads the response to an instant query. Series without a finite value are left out.
 *
 * @throws ServiceError SIGNAL_REFUSED, SIGNAL_MALFORMED, SIGNAL_TOO_LARGE
 */
export function readVector(text: string): readonly VectorSample[] {
  const { type, result } = readData(text);
  if (type !== "vector") throw malformed(`The result is a ${type}, and not a vector.`);
  refuseMany(result);
  return result.flatMap((series) => {
    const { value } = readSample(fieldOf(series, "value"));
    return Number.isFinite(value) ? [{ labels: readLabels(series), value }] : [];
  });
}

function refuseMany(result: readonly unknown[]): void {
  if (result.length <= vectorSeriesMax) return;
  const words = `The query returned more than ${vectorSeriesMax} series.`;
  throw new ServiceError("SIGNAL_TOO_LARGE", words);
}

function readLabels(series: unknown): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(fieldOf(series, "metric") ?? {}).map(([name, label]) => {
      if (typeof label !== "string") throw malformed("A label is not a text.");
      return [name, label];
    }),
  );
}

/** Tolerance for times, which servers round to milliseconds. */
const timeToleranceMs = 2;

function malformed(detail: string): ServiceError {
  return new ServiceError("SIGNAL_MALFORMED", detail);
}

function readData(text: string): { readonly type: string; readonly result: readonly unknown[] } {
  if (!isLeanJson(text)) {
    const words = "The response has too many lists and objects for its length.";
    throw new ServiceError("SIGNAL_TOO_LARGE", words);
  }
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch (cause) {
    const words = "The response is not JSON, or it is truncated.";
    throw new ServiceError("SIGNAL_MALFORMED", words, { cause });
  }
  const status = fieldOf(answer, "status");
  if (status === "error") {
    throw new ServiceError("SIGNAL_REFUSED", "Prometheus returned an error for the query.");
  }
  const data = fieldOf(answer, "data");
  const [type, result] = [fieldOf(data, "resultType"), fieldOf(data, "result")];
  const isType = type === "matrix" || type === "vector" || type === "scalar" || type === "string";
  if (status !== "success" || !isType || !Array.isArray(result)) {
    throw malformed("The response is not one of Prometheus's HTTP API.");
  }
  return { type, result };
}

/** Reads a pair of a time in seconds and a number as text. */
function readSample(sample: unknown): { readonly timeMs: number; readonly value: number } {
  const parts: readonly unknown[] = Array.isArray(sample) ? sample : [];
  const [time, text] = parts;
  const isPair = typeof time === "number" && Number.isFinite(time) && typeof text === "string";
  if (!isPair || parts.length !== 2) throw malformed("A value is not a pair of a time and a text.");
  if (!/^(?:NaN|[+-]?Inf|[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)$/.test(text)) {
    throw malformed("A value is not a number.");
  }
  return { timeMs: time * 1_000, value: /[fN]/.test(text) ? Number.NaN : Number(text) };
}

function fieldOf(value: unknown, name: string): unknown {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject && Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined;
}
