import { decodeUtf8 } from "./ext-proc-scanner.js";

/**
 * A header's value: its bytes as UTF-8, or each as one character of Latin-1 where they are not. So
 * nothing is lost and no request is refused for them, and texts equal those of other calls.
 */
export function decodeHeaderValue(bytes: Buffer): string {
  let seen = 0;
  for (const byte of bytes) seen |= byte;
  if (seen < 128) return bytes.toString("latin1");
  return decodeUtf8(bytes) ?? bytes.toString("latin1");
}

/** A header that comes again: as one, in the way of Envoy. */
export function joinHeader(headers: Map<string, string>, name: string, value: string): void {
  const before = headers.get(name);
  const separator = name === "cookie" ? "; " : ",";
  headers.set(name, before === undefined ? value : `${before}${separator}${value}`);
}
