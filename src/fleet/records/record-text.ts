import { ServiceError } from "../../core/base/errors.js";
import type { JsonObject } from "../../core/base/json.js";
import { isLeanJson, type JsonBounds } from "../../core/base/json-count.js";
import type { RecordKind, SharedRecord } from "./shared-records.js";

/**
 * A record as its text says it: an object where there are few and large ones, else the text.
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

/** A record that is read anew each time that somebody asks: half of the memory of an object. */
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

/** What a record may have: many times what one has, of which a policy's files are the most. */
const recordMax: JsonBounds = { containersMax: 8_192, valuesMax: 16_384 };

/**
 * A JSON object from a text.
 *
 * @throws ServiceError STORE_PROTOCOL for anything else
 */
export function parseObject(text: string): JsonObject {
  if (!isLeanJson(text, recordMax)) throw new ServiceError("STORE_PROTOCOL");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // What it says are callers' values.
    throw new ServiceError("STORE_PROTOCOL");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new ServiceError("STORE_PROTOCOL");
  }
  return value as JsonObject;
}
