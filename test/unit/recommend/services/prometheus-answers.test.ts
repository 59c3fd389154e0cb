import { describe, expect, test } from "vitest";
import { isServiceError } from "../../../../src/core/base/errors.js";
import {
  readRange,
  readVector,
  vectorSeriesMax,
} from "../../../../src/recommend/services/prometheus-answers.js";
import { windowsOfSeries } from "../../../../src/recommend/services/prometheus-windows.js";

const range = { startMs: 60_000, endMs: 300_000, stepMs: 60_000 };

function matrix(values: unknown, more: readonly unknown[] = []): string {
  const result = [{ metric: {}, values }, ...more];
  return JSON.stringify({ status: "success", data: { resultType: "matrix", result } });
}

function vector(result: unknown): string {
  return JSON.stringify({ status: "success", data: { resultType: "vector", result } });
}

/** The code and the words of a refusal. */
function refusal(read: () => unknown): string {
  try {
    return `read ${JSON.stringify(read())}`;
  } catch (thrown) {
    if (!isServiceError(thrown)) throw thrown;
    return `${thrown.code} ${thrown.message}`;
  }
}

describe("readRange()", () => {
  test("has a value for each step, and NaN where there is none", () => {
    const values = [
      [60, "1"],
      [120, "NaN"],
      [180, "+Inf"],
      [240.001, "2.5e+1"],
    ];
    expect(readRange(matrix(values), range)).toEqual([1, Number.NaN, Number.NaN, 25, Number.NaN]);
  });

  test("has no value where there is no series", () => {
    const text = JSON.stringify({ status: "success", data: { resultType: "matrix", result: [] } });
    expect(readRange(text, range)).toEqual(new Array(5).fill(Number.NaN));
  });

  test.each([
    { why: "no JSON", text: "<html>", words: "not JSON, or it is truncated" },
    { why: "half of it", text: matrix([[60, "1"]]).slice(0, -9), words: "or it is truncated" },
    { why: "an error", text: '{"status":"error"}', words: "SIGNAL_REFUSED" },
    { why: "another API", text: '{"data":[]}', words: "not one of Prometheus's HTTP API" },
    { why: "a list", text: "[]", words: "not one of Prometheus's HTTP API" },
    { why: "a vector", text: vector([]), words: "is a vector, and not a matrix" },
    { why: "two series", text: matrix([], [{ values: [] }]), words: "2 series instead of one" },
    { why: "no values", text: matrix(undefined), words: "no list of values" },
    { why: "values that are none", text: matrix({ length: 2 }), words: "no list of values" },
    { why: "a number as a number", text: matrix([[60, 1]]), words: "not a pair of a time and a" },
    {
      why: "a time as text",
      text: matrix([["60", "1"]]),
      words: "not a pair of a time and a text",
    },
    { why: "three parts", text: matrix([[60, "1", 2]]), words: "not a pair of a time and a text" },
    { why: "words", text: matrix([[60, "many"]]), words: "not a number" },
    {
      why: "times that fall",
      text: matrix([
        [120, "1"],
        [60, "1"],
      ]),
      words: "do not rise",
    },
    {
      why: "a time twice",
      text: matrix([
        [60, "1"],
        [60, "1"],
      ]),
      words: "do not rise",
    },
    { why: "a time between steps", text: matrix([[90, "1"]]), words: "was not asked for" },
    { why: "a time before", text: matrix([[0, "1"]]), words: "was not asked for" },
    { why: "a time after", text: matrix([[360, "1"]]), words: "was not asked for" },
    { why: "a time far away", text: matrix([[1e300, "1"]]), words: "was not asked for" },
    { why: "many lists", text: `[${"[],".repeat(40_000)}[]]`, words: "SIGNAL_TOO_LARGE" },
  ])("refuses $why", ({ text, words }) => {
    expect(refusal(() => readRange(text, range))).toContain(words);
  });
});

describe("readVector()", () => {
  test("has the labels and values of series with a finite value", () => {
    const text = vector([
      { metric: { rule: "user" }, value: [1, "2"] },
      { metric: { rule: "ip" }, value: [1, "NaN"] },
    ]);
    expect(readVector(text)).toEqual([{ labels: new Map([["rule", "user"]]), value: 2 }]);
  });

  test.each([
    { why: "a matrix", text: matrix([]), words: "is a matrix, and not a vector" },
    { why: "no value", text: vector([{ metric: {} }]), words: "not a pair" },
    {
      why: "a label that is a number",
      text: vector([{ metric: { a: 1 }, value: [1, "2"] }]),
      words: "A label is not a text",
    },
    {
      why: "too many series",
      text: vector(new Array(vectorSeriesMax + 1).fill({ metric: {}, value: [1, "2"] })),
      words: "SIGNAL_TOO_LARGE",
    },
  ])("refuses $why", ({ text, words }) => {
    expect(refusal(() => readVector(text))).toContain(words);
  });
});

describe("windowsOfSeries()", () => {
  const none = new Array(2).fill(Number.NaN);
  const series = {
    perSecond: [10, 20],
    latencyMs: none,
    inFlight: [1, 3],
    p50Ms: none,
    p99Ms: none,
    errorsPerSecond: [0, Number.NaN],
    limit: [40, Number.NaN],
  };

  test("has windows that end at their steps", () => {
    expect(windowsOfSeries(series, range)).toMatchObject([
      { startMs: 0, lengthMs: 60_000, perSecond: 10, inFlight: 1, errorsPerSecond: 0, limit: 40 },
      { startMs: 60_000, perSecond: 20, inFlight: 3, limit: undefined },
    ]);
  });

  test("takes Envoy's latencies instead of a gauge, if there are any", () => {
    const windows = windowsOfSeries({ ...series, latencyMs: [50, Number.NaN] }, range);
    expect(windows).toMatchObject([
      { latencyMs: 50, inFlight: undefined },
      { latencyMs: undefined, inFlight: undefined },
    ]);
  });
});
