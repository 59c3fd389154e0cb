import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  createJsonTree,
  jsonStepsMax,
  type WantedPath,
} from "../../../../src/core/usage/json-paths.js";
import { JsonReader, jsonScalarBytesMax } from "../../../../src/core/usage/json-reader.js";
import { propertyRuns } from "../../../support/seeds.js";

type Found = Readonly<Record<string, readonly unknown[]>>;

/** What a reader of those paths finds in bytes that end at these places. */
function find(
  paths: readonly (readonly string[])[],
  text: string | Uint8Array,
  ends: readonly number[] = [],
): Found {
  const found: Record<string, unknown[]> = {};
  let documentCount = 0;
  const note = (slot: string, value: unknown) => {
    found[slot] ??= [];
    found[slot].push(value);
  };
  const wanted = paths.map(
    (steps): WantedPath<string> => ({ steps, leaf: { kind: "scalar", slot: steps.join(".") } }),
  );
  const reader = new JsonReader(createJsonTree(wanted), {
    scalar: (slot, value, isText) => note(slot, isText ? value : JSON.parse(value)),
    piece: () => {},
    pieceEnd: () => {},
    documentEnd() {
      documentCount += 1;
    },
  });
  const bytes = typeof text === "string" ? Buffer.from(text) : text;
  let from = 0;
  for (const end of [...ends, bytes.length]) {
    reader.push(bytes, from, end);
    from = end;
  }
  reader.reset();
  return { ...found, documents: [documentCount] };
}

/** The same, by `JSON.parse`. */
function findInValue(paths: readonly (readonly string[])[], value: unknown): Found {
  const found: Record<string, unknown[]> = {};
  for (const steps of paths) {
    const values = valuesAt(value, steps).filter((one) => typeof one !== "object" || one === null);
    if (values.length > 0) found[steps.join(".")] = values;
  }
  return found;
}

function valuesAt(value: unknown, [step, ...rest]: readonly string[]): readonly unknown[] {
  if (step === undefined) return [value];
  if (step === "*") return Array.isArray(value) ? value.flatMap((one) => valuesAt(one, rest)) : [];
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [];
  const fields: Record<string, unknown> = { ...value };
  return Object.hasOwn(fields, step) ? valuesAt(fields[step], rest) : [];
}

const keys = ["a", "b", "usage", "ü", "🌍", 'q"', "\\", ""];

const key = fc.constantFrom(...keys);

const { tree: value } = fc.letrec((tie) => ({
  tree: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.oneof(fc.integer(), fc.boolean(), fc.constant(null), fc.string({ unit: "grapheme" })),
    fc.array(tie("tree"), { maxLength: 3 }),
    fc.dictionary(key, tie("tree"), { maxKeys: 4 }),
  ),
}));

const path = fc.array(fc.oneof(key, fc.constant("*")), { minLength: 1, maxLength: 4 });

/** Any JSON of a value: spaces, and characters as escapes. */
const written = (one: unknown, isSpaced: boolean, areEscaped: boolean) => {
  const text = JSON.stringify(one, undefined, isSpaced ? "\t" : undefined);
  if (!areEscaped) return text;
  return text.replace(/[^\x20-\x7e\t\n]|[a-z](?=[a-z]*":)/g, (character) =>
    [...Array(character.length).keys()]
      .map((i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, "0")}`)
      .join(""),
  );
};

describe("JsonReader", () => {
  it("finds fields whose names take one to four bytes of UTF-8", () => {
    const names = ["\u007f", "\u0080", "\u07ff", "\u0800", "\uffff", "\u{10000}", "\u{10ffff}"];
    const value = Object.fromEntries(names.map((name, i) => [name, i]));
    const paths = names.map((name) => [name]);
    expect(find(paths, JSON.stringify(value))).toMatchObject(findInValue(paths, value));
  });

  it("finds what JSON.parse finds, in whatever pieces it comes", () => {
    fc.assert(
      fc.property(
        fc.dictionary(key, value, { maxKeys: 4 }),
        fc.uniqueArray(path, { maxLength: 6, selector: String }),
        fc.record({ isSpaced: fc.boolean(), areEscaped: fc.boolean() }),
        fc.array(fc.nat(), { maxLength: 6 }),
        (document, paths, { isSpaced, areEscaped }, places) => {
          const text = written(document, isSpaced, areEscaped);
          const size = Buffer.byteLength(text);
          const rooted = paths.filter(([first]) => first !== "*");
          const expected = {
            ...findInValue(rooted, JSON.parse(JSON.stringify(document))),
            documents: [1],
          };
          const ends = places.map((at) => at % (size + 1)).sort((a, b) => a - b);
          expect(find(rooted, text)).toEqual(expected);
          expect(find(rooted, text, ends)).toEqual(expected);
          const everywhere = Array.from({ length: size }, (_, i) => i);
          expect(find(rooted, text, everywhere)).toEqual(expected);
        },
      ),
      propertyRuns(500),
    );
  });

  it.each([
    { text: '{"a":1,"a":2}', found: { a: [1, 2], documents: [1] } },
    { text: '{"a":1} {"a":2}\n{"a":3}', found: { a: [1, 2, 3], documents: [3] } },
    { text: '[{"a":1},{"a":2}]', found: { a: [1, 2], documents: [3] } },
    { text: '{"\\u0061":1}', found: { a: [1], documents: [1] } },
    { text: '{"b":{"a":1},"a":"{\\"a\\":2}"}', found: { a: ['{"a":2}'], documents: [1] } },
    { text: '{"b":["}","\\\\",{"x":"]"}],"a":1}', found: { a: [1], documents: [1] } },
    { text: '{"a":12', found: { documents: [1] } },
    { text: '{"a":{"a":1},"c":[{"a":1}]}', found: { documents: [1] } },
    { text: '"a"', found: { documents: [1] } },
    { text: ']]}}{"a":1}', found: { a: [1], documents: [1] } },
    { text: '{"a" 1]', found: { a: [1], documents: [1] } },
  ])("finds in $text $found", ({ text, found }) => {
    expect(find([["a"]], text)).toEqual(found);
  });

  it("keeps so many bytes of a value, and matches no longer key", () => {
    const long = "x".repeat(jsonScalarBytesMax);
    expect(find([["a"]], `{"a":"${long}yz"}`)).toMatchObject({ a: [long] });
    expect(find([[long]], `{"${long}y":1}`, [9])).toEqual({ documents: [1] });
  });

  it("follows so many steps, in a list of documents as well", () => {
    const document = (depth: number) => `${'{"a":'.repeat(depth)}7${"}".repeat(depth)}`;
    const steps = (count: number) => Array.from({ length: count }, () => "a");
    const longest = steps(jsonStepsMax);
    expect(find([longest], `[${document(jsonStepsMax)}]`)).toMatchObject({
      [longest.join(".")]: [7],
    });
    expect(find([steps(jsonStepsMax + 2)], document(jsonStepsMax + 2))).toEqual({ documents: [1] });
  });
});
