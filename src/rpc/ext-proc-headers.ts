import { decodeText } from "./ext-proc-scanner.js";

/**
 * A header's value: its bytes as UTF-8, or each as one character of Latin-1 where they are not. So
 * nothing is lost and no request is refused for them, and texts equal those of other calls.
 */
export function decodeHeaderValue(bytes: Buffer, start: number, end: number): string {
  return decodeText(bytes, start, end) ?? bytes.toString("latin1", start, end);
}

/** A header that comes again: as one, in the way of Envoy. */
export function joinHeader(headers: Map<string, string>, name: string, value: string): void {
  const before = headers.get(name);
  const separator = name === "cookie" ? "; " : ",";
  headers.set(name, before === undefined ? value : `${before}${separator}${value}`);
}
