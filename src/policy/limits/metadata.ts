import { isAlias, isMap, isScalar, isSeq, type ParsedNode, Scalar, type YAMLMap } from "yaml";
import type { JsonObject, JsonValue } from "../../core/base/json.js";
import { quoteText } from "../problems/problem.js";
import type { Field, NodeReader } from "../text/node-reader.js";
import { kindOf, ratelimitBoolean } from "../text/scalars.js";
import type { Dialect } from "../text/shapes.js";

/** Maximum depth of a rule's metadata, including the outermost map. */
export const metadataDepthMax = 8;

/** Maximum length of a rule's metadata as compact JSON: each response may carry it. */
export const metadataCharsMax = 4_096;

/**
 * Reads `metadata`: a map of any values for a response's dynamic metadata. Undefined, and reported,
 * if it is wrong.
 */
export function readRuleMetadata(
  reader: NodeReader,
  field: Field,
  dialect: Dialect,
): JsonObject | undefined {
  const expected = "a map of names and values";
  const place = reader.required(field, expected);
  const node = reader.contentOf(field);
  if (place === undefined || node === undefined) return undefined;
  if (!isMap<ParsedNode, ParsedNode | null>(node)) {
    return reader.reportContent(place, {
      id: "HG124",
      message: `this is ${kindOf(node)}`,
      expected,
    });
  }
  const reading = new MetadataReading(reader, dialect);
  const metadata = reading.object(node, 1);
  if (reading.isTooDeep) {
    const bound = `at most ${metadataDepthMax} nested maps and lists`;
    const message = "the metadata is nested too deeply";
    return reader.report(place, { id: "HG135", message, expected: bound });
  }
  if (reading.isWrong) return undefined;
  const charCount = JSON.stringify(metadata).length;
  if (charCount <= metadataCharsMax) return metadata;
  const message = `the metadata has ${charCount} characters`;
  const bound = `at most ${metadataCharsMax} characters, as JSON`;
  return reader.report(place, { id: "HG135", message, expected: bound });
}

/** Converts one rule's metadata to JSON; problems are reported at their places. */
class MetadataReading {
  readonly #reader: NodeReader;
  readonly #dialect: Dialect;
  isWrong = false;
  isTooDeep = false;

  constructor(reader: NodeReader, dialect: Dialect) {
    this.#reader = reader;
    this.#dialect = dialect;
  }

  /** `depth` includes the map itself. */
  object(node: MetadataMap, depth: number): JsonObject {
    const entries = new Map<string, JsonValue>();
    for (const { key, value } of node.items) {
      const name = this.#nameOf(key);
      if (name === undefined) continue;
      const isTwice = entries.has(name);
      if (isTwice)
        this.#report(key, { id: "HG103", message: `${quoteText(name)} is defined twice` });
      const json = value === null ? value : this.#value(value, depth);
      if (json !== undefined) entries.set(name, json);
    }
    return Object.fromEntries(entries);
  }

  #value(place: ParsedNode, depth: number): JsonValue | undefined {
    const node = this.#reader.contentAt(place);
    if (node === undefined) {
      this.isWrong = true;
      return undefined;
    }
    if (isScalar(node)) return this.#scalar(place, node);
    if (depth >= metadataDepthMax) {
      this.isTooDeep = true;
      return undefined;
    }
    if (isMap<ParsedNode, ParsedNode | null>(node)) return this.object(node, depth + 1);
    const items = isSeq<ParsedNode>(node) ? node.items : [];
    return items.flatMap((item) => {
      const json = this.#value(item, depth + 1);
      return json === undefined ? [] : [json];
    });
  }

  #scalar(place: ParsedNode, node: Scalar.Parsed): JsonValue | undefined {
    const { value } = node;
    const isOld = this.#dialect === "ratelimit";
    if (typeof value === "string") return (isOld ? ratelimitBoolean(node) : undefined) ?? value;
    if (typeof value === "boolean" || value === null) return value;
    const written = String(node.source ?? "");
    if (typeof value === "number" && isPlainNumber(written, value)) return value;
    const message = `readers could parse ${quoteText(written)} to different numbers`;
    const expected = "a plain number up to 2^53, or a quoted text";
    return this.#report(place, { id: "HG134", message, expected });
  }

  #nameOf(key: ParsedNode): string | undefined {
    if (isScalar(key) && typeof key.value === "string") {
      if (key.value !== "<<" || key.type !== Scalar.PLAIN) return key.value;
      return this.#report(key, { id: "HG104", message: "metadata does not support merge keys" });
    }
    // Aliases were reported when they were resolved.
    this.isWrong = true;
    if (isAlias(key)) return undefined;
    return this.#report(key, { id: "HG123", message: "a metadata key is not text" });
  }

  #report(place: ParsedNode, finding: Parameters<NodeReader["report"]>[1]): undefined {
    this.isWrong = true;
    return this.#reader.report(place, finding);
  }
}

type MetadataMap = YAMLMap<ParsedNode, ParsedNode | null>;

/**
 * Reports whether a number is neither octal in YAML 1.1, nor infinite, nor a whole number that a
 * double rounds. A number written with a fraction or an exponent is a double for every reader.
 */
function isPlainNumber(written: string, value: number): boolean {
  if (!Number.isFinite(value) || /^[-+]?0[0-9]/.test(written)) return false;
  return !Number.isInteger(value) || Number.isSafeInteger(value) || /[.e]/i.test(written);
}
