import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { JsonFields } from "../../../src/simulate/json-fields.js";
import { viewOf } from "../../../src/simulate/log-line.js";
import { anyCodePoint } from "../../support/any-code-point.js";
import { logLine } from "../../support/log-line.js";
import { propertyRuns } from "../../support/seeds.js";

const names = ["time", "a", "length", "__proto__", "toString", "ü"];

/** What `JSON.parse` says of those names; undefined: it reads no object. */
function parsed(line: string): readonly (string | undefined)[] | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null) return undefined;
  const fields = new Map<string, unknown>(Object.entries(value));
  if (Array.isArray(value)) fields.set("length", value.length);
  return names.map((name) => {
    const part = fields.get(name);
    return typeof part === "string" || typeof part === "number" ? String(part) : undefined;
  });
}

const text = fc.oneof(
  fc.constantFrom(...names, "", "-", "GET", "x"),
  fc.string({ unit: anyCodePoint, maxLength: 6 }),
);
const value = fc.oneof(
  { arbitrary: text, weight: 4 },
  fc.constantFrom(0, -1, 12, 1.5, 1e30, -2.25e-9, true, false, null),
  fc.constantFrom([], [1], {}, { a: "b" }),
);
const entries = fc.array(fc.tuple(text, value), { maxLength: 6 });

/** An object, with keys that may come twice, and with blanks. */
function objectText(parts: readonly (readonly [string, unknown])[], blanks: string): string {
  const fields = parts.map(
    ([key, part]) => `${JSON.stringify(key)}:${blanks}${JSON.stringify(part)}`,
  );
  return `{${fields.join(`${blanks},`)}${blanks}}`;
}

const blanks = fc.constantFrom("", " ", "\t");
const objects = fc
  .array(fc.record({ entries, blanks }), { maxLength: 4 })
  .map((some) => some.map((one) => objectText(one.entries, one.blanks)));

/** Lines of one program: the same keys in the same order, of which some are left out. */
const programLines = fc
  .array(text, { minLength: 1, maxLength: 20 })
  .chain((keys) =>
    fc.record({
      blanks,
      rows: fc.array(fc.tuple(...keys.map((key) => fc.option(fc.tuple(fc.constant(key), value)))), {
        maxLength: 8,
      }),
    }),
  )
  .map(({ rows, blanks: between }) =>
    rows.map((row) => {
      const said = row.filter((part) => part !== null);
      return objectText(said, between);
    }),
  );

/** Bytes put into lines, and others taken out. */
const damage = fc.record({
  at: fc.double({ min: 0, max: 1, noNaN: true }),
  drop: fc.nat(2),
  put: fc.oneof(
    fc.constantFrom('"', ",", ":", "{", "}", "0", "-", ".", "1e5", "\\", "\u0001", "nul"),
    fc.constantFrom(" ", "\t", "\0", '\\"', "\\u0041", "[1]", ',"a":"b"', ',"a":1', "\u2028"),
    fc.uint8Array({ maxLength: 3 }),
  ),
});

/** Lines as bytes, some of them damaged. */
const lines = fc
  .record({
    texts: fc.oneof(objects, programLines),
    damages: fc.array(fc.option(damage), { maxLength: 8 }),
  })
  .map(({ texts, damages }) =>
    texts.map((said, i) => {
      const bytes = Buffer.from(said);
      const one = damages[i] ?? undefined;
      if (one === undefined) return bytes;
      const at = Math.floor(one.at * bytes.length);
      return Buffer.concat([
        bytes.subarray(0, at),
        typeof one.put === "string" ? Buffer.from(one.put) : one.put,
        bytes.subarray(at + one.drop),
      ]);
    }),
  );

describe("JsonFields", () => {
  it("reads what JSON.parse reads, of any line and whatever came before", () => {
    fc.assert(
      fc.property(lines, (some) => {
        const fields = new JsonFields(names);
        for (const bytes of [...some, ...some]) {
          const line = bytes.toString();
          const expected = parsed(line);
          expect(fields.take(logLine(bytes)), line).toBe(expected !== undefined);
          if (expected === undefined) continue;
          expect(
            names.map((_, place) => fields.value(place)),
            line,
          ).toEqual(expected);
        }
      }),
      propertyRuns(200),
    );
  });

  it.each([
    ['{"a":01}', undefined],
    ['{"a":1.}', undefined],
    ['{"a":-}', undefined],
    ['{"a":1e2}', "100"],
    ['{"a":1.50}', "1.5"],
    ['{"a":"x","a":null}', undefined],
    ['{"a":"x"} ', "x"],
    ['{"a":"x"}}', undefined],
    ['{"a":"x",}', undefined],
    ['{"a":"x"', undefined],
    ['{"a";"x"}', undefined],
    ['{"a" :"x"}', "x"],
    ['{"a":"before";"b":1}', undefined],
    ['["a":"x"}', undefined],
    ['{"a":nul}', undefined],
    ['{"a":"x\u0000"}', undefined],
    ['{"a":"x","a":1}', "1"],
    ['{"a":"x","a":true}', undefined],
    ['{"a":1,"b":{"a":"x"}}', "1"],
    ['{"a":"\\u0041"}', "A"],
    ['{"\\u0061":"x"}', "x"],
  ])("finds in %s: %j", (line, expected) => {
    const fields = new JsonFields(["a"]);
    fields.take(logLine('{"a":"before"}'));
    expect(fields.take(logLine(line)) ? fields.value(0) : undefined).toBe(expected);
  });

  it.each([
    ["in the midst of a line", '{"a":1}', '{"b":2}', '{"b":2{"a":1}'],
    ["as the first of a line", '{"b":2,"a":1}', '{"b":2}', ',"a":1}'],
  ])("takes no other key's place for its own, %s", (_, ...said) => {
    const fields = new JsonFields(["a", "b"]);
    const taken = said.map((line) => fields.take(logLine(line)));
    expect(taken).toEqual([true, true, false]);
  });

  it.each(['{"a":"bef', '{"a":"', '{"a":', '{"a"', "{", '{"a":"before"'])(
    "reads no further than to the end of what was read, where %s ends it",
    (said) => {
      const fields = new JsonFields(["a"]);
      fields.take(logLine('{"a":"before"}'));
      const bytes = Buffer.from(said);
      const line = { bytes, view: viewOf(bytes), start: 0, end: bytes.length };
      expect(fields.take(line)).toBe(false);
    },
  );

  it("reads objects with more keys than it remembers", () => {
    const keys = Array.from({ length: 400 }, (_, i) => `key-${i}`);
    const line = JSON.stringify(Object.fromEntries(keys.map((key) => [key, key])));
    const fields = new JsonFields(["key-0", "key-399"]);
    for (let i = 0; i < 2; i += 1) {
      expect(fields.take(logLine(line))).toBe(true);
      expect([fields.value(0), fields.value(1)]).toEqual(["key-0", "key-399"]);
    }
  });
});
