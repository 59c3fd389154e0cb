/** A line of a log among the bytes that were read with it: what is not looked at is no text. */
export interface LogLine {
  /** All that was read at once, in UTF-8. */
  readonly bytes: Buffer;
  /** The same bytes, to be compared four at a time. */
  readonly view: DataView;
  readonly start: number;
  /** Behind the last byte, where what ends a line begins. */
  readonly end: number;
}

/** What a line says, as a text. */
export function lineText({ bytes, start, end }: LogLine): string {
  return bytes.toString("utf8", start, end);
}

/** Bytes to be compared four at a time. */
export function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}
