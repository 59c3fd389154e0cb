import { assert } from "../../core/base/errors.js";
import type { JsonObject, JsonValue } from "../../core/base/json.js";
import { durationPattern } from "./duration.js";
import type { Form, MapForm, NameRow } from "./form.js";
import { bytesPattern } from "./quantities.js";

/**
 * Builds the JSON Schema of a file, for editors: every name with its documentation, type, bounds
 * and default. `headgate check` validates what depends on the rest of a policy.
 *
 * Source: JSON Schema, draft 2020-12.
 */
export function makeJsonSchema(form: MapForm, { title }: { readonly title: string }): JsonObject {
  const schemas = new Definitions();
  const root = schemas.refer(form);
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title,
    ...root,
    $defs: schemas.finish(),
  };
}

/** One definition for each map, made when it is first referred to. */
class Definitions {
  readonly #names = new Map<MapForm, string>();
  readonly #definitions = new Map<string, JsonObject>();

  refer(form: MapForm): JsonObject {
    let name = this.#names.get(form);
    if (name === undefined) {
      name = this.#freeName(form);
      this.#names.set(form, name);
      // Set before the names of the map are visited, because a map may contain itself.
      this.#definitions.set(name, {});
      this.#definitions.set(name, this.#define(form));
    }
    return { $ref: `#/$defs/${name}` };
  }

  finish(): JsonObject {
    return Object.fromEntries(this.#definitions);
  }

  #freeName({ shape }: MapForm): string {
    const base = shape.title
      .replace(/^an? /, "")
      .replaceAll(/['.]/g, "")
      .replaceAll(/ +([a-z])/g, (_, letter: string) => letter.toUpperCase());
    let name = base;
    for (let i = 2; this.#definitions.has(name); i += 1) name = `${base}${i}`;
    return name;
  }

  #define({ shape, docs, rows, required, exclusive, needed }: MapForm): JsonObject {
    const properties = shape.names.map((name) => {
      const named = rows[name];
      assert(named !== undefined, "each name of a shape has a row");
      return [name, this.#describe(named, shape.blankNames.includes(name))] as const;
    });
    const conditions = [
      ...exclusive.flatMap((group) => pairs(group).map((pair) => ({ not: { required: pair } }))),
      ...needed.map((group) => ({ anyOf: group.map((name) => ({ required: [name] })) })),
    ];
    return {
      type: "object",
      description: docs,
      properties: Object.fromEntries(properties),
      ...(required.length > 0 && { required }),
      additionalProperties: false,
      ...(conditions.length > 0 && { allOf: conditions }),
    };
  }

  #describe({ docs, form, writtenDefault }: NameRow, mayBeBlank: boolean): JsonObject {
    const schema = this.#schemaOf(form);
    return {
      description: docs,
      ...(mayBeBlank ? { anyOf: [schema, { type: "null" }] } : schema),
      ...(writtenDefault !== undefined && { default: writtenDefault }),
    };
  }

  #schemaOf(form: Form): JsonObject {
    switch (form.kind) {
      case "map":
        return this.refer(form.map());
      case "list":
        return {
          type: "array",
          items: this.#schemaOf(form.item),
          ...(form.min > 0 && { minItems: form.min }),
          ...(form.max !== undefined && { maxItems: form.max }),
        };
      case "any":
        return { anyOf: form.of.map((each) => this.#schemaOf(each)) };
      case "texts":
        return {
          type: "object",
          propertyNames: { pattern: form.key.source },
          additionalProperties: this.#schemaOf(form.value),
          minProperties: 1,
          maxProperties: form.max,
        };
      default:
        return schemaOfValue(form);
    }
  }
}

type ValueForm = Exclude<Form, { readonly kind: "map" | "list" | "any" | "texts" }>;

/** Returns the schema of a single value. */
function schemaOfValue(form: ValueForm): JsonObject {
  switch (form.kind) {
    case "text":
      return schemaOfText(form);
    case "whole":
      return { type: "integer", minimum: form.min, maximum: form.max };
    case "number": {
      const { min, max, isMinExcluded } = form.bounds;
      return {
        type: "number",
        [isMinExcluded ? "exclusiveMinimum" : "minimum"]: min,
        maximum: max,
      };
    }
    case "duration":
      return { type: "string", pattern: durationPattern.source, minLength: 1 };
    case "bytes":
      return {
        anyOf: [
          { type: "string", pattern: bytesPattern.source },
          { type: "integer", minimum: 1 },
        ],
      };
    case "flag":
      return { type: "boolean" };
    case "ratelimitBoolean":
      return { anyOf: [{ type: "boolean" }, { enum: [...ratelimitBooleans] }] };
    case "words":
      return schemaOfWords(form);
    case "json":
      return { type: "object" };
  }
}

/** Whole numbers, true and false count as text, as they are written. */
function schemaOfText({ charsMax, pattern }: Extract<Form, { kind: "text" }>): JsonObject {
  return {
    type: ["string", "integer", "boolean"],
    minLength: 1,
    maxLength: charsMax,
    ...(pattern !== undefined && { pattern: pattern.source }),
  };
}

/** Source: https://yaml.org/type/bool.html. */
const ratelimitBooleans = ["y", "Y", "yes", "Yes", "YES", "on", "On", "ON"].concat([
  "n",
  "N",
  "no",
  "No",
  "NO",
  "off",
  "Off",
  "OFF",
]);

function schemaOfWords({ words, ignoreCase }: Extract<Form, { kind: "words" }>): JsonObject {
  if (!ignoreCase) return { enum: [...words] };
  // A pattern has no flags in JSON Schema.
  const letters = (word: string): string =>
    [...word].map((letter) => `[${letter}${letter.toUpperCase()}]`).join("");
  return { type: "string", pattern: `^(?:${words.map(letters).join("|")})$` };
}

function pairs(group: readonly string[]): readonly JsonValue[][] {
  return group.flatMap((one, i) => group.slice(i + 1).map((other) => [one, other]));
}
