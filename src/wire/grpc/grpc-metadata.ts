import type { HeaderFields } from "../base/http2.js";

/**
 * The first value of a metadata field; of a binary one its bytes as Latin-1, and undefined for what
 * is no Base64. Source: gRPC over HTTP2, "Custom-Metadata" and "Binary-Header".
 */
export function metadataOf(fields: HeaderFields, name: string): string | undefined {
  const value = fields.get(name);
  return value !== undefined && name.endsWith("-bin") ? decodeBinary(value) : value;
}

/** Padded or not, as callers like; several values may stand in one field with commas between. */
const base64 = /^[A-Za-z0-9+/]*={0,2}$/;

function decodeBinary(value: string): string | undefined {
  const [first = ""] = value.split(",", 1);
  const text = first.trim();
  return base64.test(text) ? Buffer.from(text, "base64").toString("latin1") : undefined;
}
