import { ServiceError } from "../../core/base/errors.js";
import type { JsonObject } from "../../core/base/json.js";
import { isLeanJson, type JsonBounds } from "../../core/base/json-count.js";
import type { RecordKind, SharedRecord } from "./record-store.js";

/**
 * Creates a record from its text. Kinds with few, large records are parsed at once; overrides keep
 * the text.
 *
 * @param text a JSON object
 * @throws ServiceError STORE_PROTOCOL
 */
export function recordOf(
  kind: RecordKind,
  { id, version }: Pick<SharedRecord, "id" | "version">,
  text: string,
): SharedRecord {
  return kind === "override"
    ? new TextRecord(id, version, text)
    : { id, version, value: parseObject(text) };
}

/** A record that parses its text on each read. Needs half of the memory of an object. */
class TextRecord implements SharedRecord {
  readonly id: string;
  readonly version: number;
  readonly #text: string;

  constructor(id: string, version: number, text: string) {
    this.id = id;
    this.version = version;
    this.#text = text;
  }

  get value(): JsonObject {
    return parseObject(this.#text);
  }
}

/** Bounds of a record's JSON, many times what the largest records, policies with files, have. */
const recordMax: JsonBounds = { containersMax: 8_192, valuesMax: 16_384 };

/**
 * Parses a JSON object.
 *
 * @throws ServiceError STORE_PROTOCOL for anything else
 */
export function parseObject(text: string): JsonObject {
  if (!isLeanJson(text, recordMax)) throw new ServiceError("STORE_PROTOCOL");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's message would contain callers' values.
    throw new ServiceError("STORE_PROTOCOL");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new ServiceError("STORE_PROTOCOL");
  }
  return value as JsonObject;
}
