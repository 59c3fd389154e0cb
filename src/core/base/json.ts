/**
 * A JSON value, which a policy can attach to a rule and a response can contain. Integers are exact
 * up to 2^53. NaN and infinities do not occur.
 *
 * Source: google.protobuf.Value.
 */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;

/** A JSON object. Source: google.protobuf.Struct. */
export interface JsonObject {
  readonly [name: string]: JsonValue;
}

/** Reports whether a value is present and a JSON object. */
export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
