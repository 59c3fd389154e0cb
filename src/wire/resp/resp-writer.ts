/** Versions of the protocol: 2, and 3, which a client requests with HELLO. */
export type RespVersion = 2 | 3;

/** `+OK`. */
export const okReply = "+OK\r\n";

/** @param text one line, of printable ASCII */
export function simpleReply(text: string): string {
  return `+${text}\r\n`;
}

/** @param text a code in capitals and a sentence: one line, of printable ASCII */
export function errorReply(text: string): string {
  return `-${text}\r\n`;
}

/** @param value a safe integer */
export function integerReply(value: number): string {
  return `:${value}\r\n`;
}

/** @param text of ASCII */
export function bulkReply(text: string): string {
  return `$${text.length}\r\n${text}\r\n`;
}

/** @param replies encoded ones */
export function arrayReply(replies: readonly string[]): string {
  return `*${replies.length}\r\n${replies.join("")}`;
}

/** Encodes a map. Version 2 has no maps and gets an array of names and values. */
export function mapReply(
  entries: readonly (readonly [name: string, reply: string])[],
  version: RespVersion,
): string {
  const body = entries.map(([name, reply]) => bulkReply(name) + reply).join("");
  return version === 3 ? `%${entries.length}\r\n${body}` : `*${2 * entries.length}\r\n${body}`;
}
