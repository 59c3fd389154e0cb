import { continuationCountMax, headerBlockBytesMax } from "../base/http2-limits.js";

/**
 * A header block that arrives in several frames, until its last one is there. The connection
 * carries nothing else meanwhile.
 *
 * Source: RFC 9113, sections 4.3 and 6.10.
 */
export class HeaderBlock {
  /** The stream whose header block is open; 0 if there is none. */
  streamId = 0;
  /** Whether the HEADERS frame ends the peer's side of the stream. */
  isEndStream = false;
  /** Whether that frame says that the stream depends on itself. */
  isSelfDependent = false;
  /** The bytes so far. Only the first `byteCount` belong to this block. */
  bytes = noBytes;
  byteCount = 0;
  #continuationCount = 0;

  /** Begins a block with the head of a HEADERS frame. */
  begin(streamId: number, isEndStream: boolean, isSelfDependent: boolean): void {
    this.streamId = streamId;
    this.isEndStream = isEndStream;
    this.isSelfDependent = isSelfDependent;
    this.byteCount = 0;
    this.#continuationCount = 0;
  }

  /** Counts a CONTINUATION frame. Returns whether the block may have this many. */
  countContinuation(): boolean {
    this.#continuationCount += 1;
    return this.#continuationCount <= continuationCountMax;
  }

  /** Keeps a copy of a fragment. Returns whether the block may be this large. */
  append(source: Buffer, start: number, end: number): boolean {
    const wanted = this.byteCount + end - start;
    if (wanted > headerBlockBytesMax) return false;
    if (wanted > this.bytes.length) {
      const larger = Buffer.allocUnsafe(Math.min(headerBlockBytesMax, wanted * 2));
      this.bytes.copy(larger, 0, 0, this.byteCount);
      this.bytes = larger;
    }
    source.copy(this.bytes, this.byteCount, start, end);
    this.byteCount = wanted;
    return true;
  }

  /** Forgets the block and its memory. */
  close(): void {
    this.streamId = 0;
    this.bytes = noBytes;
    this.byteCount = 0;
  }
}

const noBytes = Buffer.alloc(0);
