import { describe, expect, it } from "vitest";
import { isServiceError } from "../../../../src/core/base/errors.js";
import {
  parseReading,
  readJsonAnswer,
  readPrometheusAnswer,
} from "../../../../src/fleet/signals/signal-answers.js";
import {
  readingKeyCharsMax,
  type SignalReadings,
} from "../../../../src/fleet/signals/signal-readings.js";

/** What is read, in short, or the code of why nothing is. */
function outcome(read: () => SignalReadings): unknown {
  try {
    const readings = read();
    return readings.kind === "whole" ? readings.reading : Object.fromEntries(readings.readings);
  } catch (thrown) {
    if (!isServiceError(thrown)) throw thrown;
    return thrown.code;
  }
}

function vector(
  ...series: readonly (readonly [Readonly<Record<string, string>>, unknown])[]
): string {
  const result = series.map(([metric, value]) => ({ metric, value: [1_700_000_000.5, value] }));
  return JSON.stringify({ status: "success", data: { resultType: "vector", result } });
}

describe("readPrometheusAnswer()", () => {
  const one = { by: undefined, keysMax: 0 };
  const keyed = { by: "db", keysMax: 2 };

  it.each([
    { what: "one series", text: vector([{}, "55000"]), found: 55_000 },
    {
      what: "several series",
      text: vector([{ p: "0" }, "1.5"], [{ p: "1" }, "2e3"]),
      found: 2_001.5,
    },
    {
      what: "a scalar",
      text: '{"status":"success","data":{"resultType":"scalar","result":[1,"7"]}}',
      found: 7,
    },
    { what: "no series", text: vector(), found: "SIGNAL_EMPTY" },
    { what: "no number", text: vector([{}, "NaN"], [{}, "+Inf"]), found: "SIGNAL_EMPTY" },
    { what: "a number and none", text: vector([{}, "NaN"], [{}, "3"]), found: 3 },
    { what: "a value that is no text", text: vector([{}, 5], [{}, null]), found: "SIGNAL_EMPTY" },
    { what: "an error", text: '{"status":"error","error":"secret"}', found: "SIGNAL_REFUSED" },
    {
      what: "a matrix",
      text: '{"data":{"resultType":"matrix","result":[]}}',
      found: "SIGNAL_MALFORMED",
    },
    { what: "no object", text: "[[[]]]", found: "SIGNAL_MALFORMED" },
    { what: "no JSON", text: "<html>", found: "SIGNAL_MALFORMED" },
    { what: "nothing", text: "", found: "SIGNAL_MALFORMED" },
  ])("finds $found in $what", ({ text, found }) => {
    expect(outcome(() => readPrometheusAnswer(text, one))).toBe(found);
  });

  it("tells series apart by a label, and adds up those of one value", () => {
    const text = vector([{ db: "a" }, "1"], [{ db: "b" }, "2"], [{ db: "a", p: "1" }, "3"]);
    expect(outcome(() => readPrometheusAnswer(text, keyed))).toEqual({ a: 4, b: 2 });
  });

  it("leaves aside series without the label, too long keys, and keys above the bound", () => {
    const long = "x".repeat(readingKeyCharsMax + 1);
    const text = vector([{}, "1"], [{ db: "" }, "1"], [{ db: long }, "1"], [{ db: "a" }, "1"]);
    expect(outcome(() => readPrometheusAnswer(text, keyed))).toEqual({ a: 1 });
    const longest = vector([{ db: long.slice(1) }, "1"]);
    expect(outcome(() => readPrometheusAnswer(longest, keyed))).toEqual({ [long.slice(1)]: 1 });
    const many = vector(
      [{ db: "a" }, "1"],
      [{ db: "b" }, "1"],
      [{ db: "c" }, "1"],
      [{ db: "a" }, "1"],
    );
    expect(outcome(() => readPrometheusAnswer(many, keyed))).toEqual({ a: 2, b: 1 });
    expect(outcome(() => readPrometheusAnswer(vector([{}, "1"]), keyed))).toBe("SIGNAL_EMPTY");
  });

  it("takes keys that objects have by themselves as any other", () => {
    const text = vector([{ db: "__proto__" }, "1"], [{ db: "constructor" }, "2"]);
    const readings = readPrometheusAnswer(text, keyed);
    expect(readings.kind === "byKey" && [...readings.readings]).toEqual([
      ["__proto__", 1],
      ["constructor", 2],
    ]);
  });
});

describe("readJsonAnswer()", () => {
  it.each([
    { text: "55000", pointer: [], found: 55_000 },
    { text: '{"lag":{"total":-1.5}}', pointer: ["lag", "total"], found: -1.5 },
    { text: '[{"lag":3}]', pointer: ["0", "lag"], found: 3 },
    { text: '{"lag":3}', pointer: ["lags"], found: "SIGNAL_EMPTY" },
    { text: '{"lag":1e999}', pointer: ["lag"], found: "SIGNAL_EMPTY" },
    { text: '{"lag":"3"}', pointer: ["lag"], found: "SIGNAL_MALFORMED" },
    { text: '{"lag":null}', pointer: ["lag"], found: "SIGNAL_MALFORMED" },
    { text: '{"lag":[1]}', pointer: ["lag"], found: "SIGNAL_MALFORMED" },
    { text: '{"lag":{"a":1}}', pointer: ["lag"], found: "SIGNAL_MALFORMED" },
    { text: "lag 3", pointer: [], found: "SIGNAL_MALFORMED" },
  ])("finds $found in $text", ({ text, pointer, found }) => {
    expect(outcome(() => readJsonAnswer(text, { pointer }))).toBe(found);
  });

  it("finds numbers by key where the limit is split", () => {
    const text = '{"a":1,"b":"2","c":3,"d":4,"":5}';
    expect(outcome(() => readJsonAnswer(text, { pointer: [], keysMax: 2 }))).toEqual({
      a: 1,
      c: 3,
    });
    expect(outcome(() => readJsonAnswer("{}", { pointer: [], keysMax: 2 }))).toBe("SIGNAL_EMPTY");
    expect(outcome(() => readJsonAnswer("6", { pointer: [], keysMax: 2 }))).toBe(6);
  });
});

describe("parseReading()", () => {
  it.each([
    ["1", 1],
    ["+1.5e+06", 1_500_000],
    [".5", 0.5],
    ["5.", 5],
    ["-2E-1", -0.2],
    ["", Number.NaN],
    [" 1", Number.NaN],
    ["0x10", Number.NaN],
    ["1_000", Number.NaN],
    ["+Inf", Number.NaN],
    ["1e400", Number.POSITIVE_INFINITY],
  ])("reads %j as %d", (text, reading) => {
    expect(parseReading(text)).toBe(reading);
  });
});
