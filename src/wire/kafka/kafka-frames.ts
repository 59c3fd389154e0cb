import { ServiceError } from "../../core/base/errors.js";
import { malformed } from "./kafka-fields.js";

/** Returns everything that was written. */
export interface FrameBounds {
  /** Maximum size of a response, in bytes. */
  readonly bytesMax: number;
  /** Bytes of it that are kept. The rest is dropped as it arrives. */
  readonly keptBytesMax: number;
}

/** Initial size of a buffer, in bytes. */
const firstBytes = 1_024;

/**
 * Splits received bytes into responses. The length of a response is checked against its limit
 * before any of it is read, and memory grows with what has arrived, not with what was announced.
 *
 * Source: Apache Kafka, "Protocol", common request and response structure.
 */
export class KafkaFrames {
  /** The length, as far as it has arrived. */
  readonly #length = Buffer.alloc(4);
  #lengthCount = 0;
  #bounds: FrameBounds | undefined;
  /** Bytes of the response that have not arrived. */
  #leftCount = 0;
  #kept = noBytes;
  #keptCount = 0;
  #keptCountMax = 0;

  /**
   * Reads the next bytes, split at any position.
   *
   * @param next the bounds of the next response; undefined: none is expected
   * @param take gets what is kept of a whole response; a view that is valid during the call
   * @throws ServiceError SIGNAL_MALFORMED, SIGNAL_TOO_LARGE, or what `take` throws
   */
  add(chunk: Buffer, next: () => FrameBounds | undefined, take: (frame: Buffer) => void): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#bounds === undefined) {
        at += this.#readLength(chunk, at, next);
        continue;
      }
      const end = Math.min(chunk.length, at + this.#leftCount);
      this.#keep(chunk.subarray(at, Math.min(end, at + this.#keptCountMax - this.#keptCount)));
      this.#leftCount -= end - at;
      at = end;
      if (this.#leftCount > 0) continue;
      const frame = this.#kept.subarray(0, this.#keptCount);
      this.#bounds = undefined;
      this.#lengthCount = 0;
      this.#kept = noBytes;
      take(frame);
    }
  }

  #readLength(chunk: Buffer, at: number, next: () => FrameBounds | undefined): number {
    const count = chunk.copy(this.#length, this.#lengthCount, at);
    this.#lengthCount += count;
    if (this.#lengthCount < this.#length.length) return count;
    const bounds = next() ?? malformed();
    const length = this.#length.readInt32BE();
    if (length < correlationIdBytes) malformed();
    if (length > bounds.bytesMax) throw new ServiceError("SIGNAL_TOO_LARGE");
    this.#bounds = bounds;
    this.#leftCount = length;
    this.#keptCountMax = Math.min(length, bounds.keptBytesMax);
    this.#keptCount = 0;
    return count;
  }

  #keep(bytes: Buffer): void {
    const wanted = this.#keptCount + bytes.length;
    if (wanted > this.#kept.length) {
      const size = Math.min(
        this.#keptCountMax,
        Math.max(wanted, 2 * this.#kept.length, firstBytes),
      );
      const larger = Buffer.alloc(size);
      this.#kept.copy(larger, 0, 0, this.#keptCount);
      this.#kept = larger;
    }
    bytes.copy(this.#kept, this.#keptCount);
    this.#keptCount = wanted;
  }
}

const noBytes = Buffer.alloc(0);

/** Every response begins with the identifier of its request. */
const correlationIdBytes = 4;
