import type { HeaderFields } from "../base/http2.js";

/**
 * Returns the first value of a metadata field; of a binary one, its bytes as Latin-1, or undefined
 * if it is not Base64. Source: gRPC over HTTP2, "Custom-Metadata" and "Binary-Header".
 */
export function metadataOf(fields: HeaderFields, name: string): string | undefined {
  const value = fields.get(name);
  return value !== undefined && name.endsWith("-bin") ? decodeBinary(value) : value;
}

/** With or without padding, as callers prefer. A field may have several values with commas. */
const base64 = /^[A-Za-z0-9+/]*={0,2}$/;

function decodeBinary(value: string): string | undefined {
  const [first = ""] = value.split(",", 1);
  const text = first.trim();
  return base64.test(text) ? Buffer.from(text, "base64").toString("latin1") : undefined;
}
