import type { SentField } from "./http2.js";
import type { OutputBuffer } from "./output-buffer.js";

/**
 * Encodes header blocks of one connection, in the order in which they are sent.
 *
 * Source: RFC 7541.
 */
export class HpackEncoder {
  /** Takes the peer's SETTINGS_HEADER_TABLE_SIZE; the next block says what came of it. */
  setPeerTableBytes(_bytes: number): void {
    throw new Error("under construction");
  }

  /**
   * Appends a block to `output`. An array of fields is not changed once it was given: what it was
   * encoded to may be remembered by it.
   */
  encode(_fields: readonly SentField[], _output: OutputBuffer): void {
    throw new Error("under construction");
  }
}
