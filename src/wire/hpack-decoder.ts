import type { HeaderFields } from "./http2.js";

/** The bounds of a decoder. */
export interface HpackDecoderBounds {
  /** SETTINGS_HEADER_TABLE_SIZE that we announced. */
  readonly tableBytesMax: number;
  /** SETTINGS_MAX_HEADER_LIST_SIZE: names, values and 32 bytes for each field. */
  readonly listBytesMax: number;
  /** Fields of one block. */
  readonly fieldCountMax: number;
}

/** The bytes of a header list that we take, counted as RFC 9113, section 6.5.2 does. */
export const headerListBytesMax = 16_384;

/** The fields of a header list that we take. */
export const headerFieldsMax = 256;

/**
 * Decodes header blocks of one connection, in the order in which they came.
 *
 * Source: RFC 7541.
 */
export class HpackDecoder {
  constructor(_bounds: HpackDecoderBounds) {
    throw new Error("under construction");
  }

  /**
   * Decodes a whole block, from `start` below `end`. Undefined for one above the bounds: its stream
   * is to be refused, the connection goes on, because its table was followed all the same.
   *
   * The same object comes again for a block that says the same by the same bytes, so what was found
   * out about it may be remembered by it.
   *
   * @throws Http2Error of the connection, COMPRESSION_ERROR; nothing may be decoded after it
   */
  decode(_bytes: Buffer, _start: number, _end: number): HeaderFields | undefined {
    throw new Error("under construction");
  }
}
