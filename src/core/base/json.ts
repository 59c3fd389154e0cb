/**
 * A value as JSON has it: what a policy attaches to a rule and a response may carry. Whole numbers
 * are exact up to 2^53; NaN and infinities do not occur.
 *
 * Source: google.protobuf.Value.
 */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;

/** Names and their values. Source: google.protobuf.Struct. */
export interface JsonObject {
  readonly [name: string]: JsonValue;
}

/** Whether there is a value, and it has names. */
export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
