import { asBuffer } from "../codec/field-reader.js";

/**
 * A RateLimitRequest, split into its hits and everything else. Thousands of calls may differ only
 * in their hits, so a request is identified by its bytes without its hits, and decoded only once.
 */
export interface ScannedRequest {
  /** The request without its hits. Equal for two requests only if they ask the same. */
  readonly identity: RequestIdentity;
  /** `hits_addend` of the request; 0 when it is not set. */
  readonly hitsAddend: number;
  /** `hits_addend` of each descriptor that has one, by its position among the descriptors. */
  readonly ownHits: ReadonlyMap<number, number> | undefined;
}

/** The bytes that identify a request, up to `end`. Valid as long as the request's own bytes. */
export interface RequestIdentity {
  readonly bytes: Uint8Array;
  readonly end: number;
  /**
   * Whether hits were removed before the end. The bytes then end with the positions of these hits
   * and their number, two bytes each. They may equal the bytes of a request without hits, so the
   * two kinds must be kept apart.
   */
  readonly isCut: boolean;
}

/** Longer requests are decoded for each call: they are rare, and caching them takes memory. */
export const scannedBytesMax = 1_024;

/**
 * Scans a request's bytes. Returns undefined for a request that only the decoder reads, which also
 * reports what is wrong: a long one, unknown or malformed fields, hits beyond 2^53.
 *
 * Source: protobuf.dev/programming-guides/encoding; fields of RateLimitRequest and
 * RateLimitDescriptor.
 */
export function scanRateLimitRequest(bytes: Uint8Array): ScannedRequest | undefined {
  if (bytes.length > scannedBytesMax) return undefined;
  const scan = new Scan(asBuffer(bytes));
  while (scan.at < bytes.length) {
    const start = scan.at;
    const tag = scan.byte();
    if (tag === tags.domain) scan.skipLength();
    else if (tag === tags.descriptors) scan.descriptor();
    else if (tag === tags.hitsAddend) scan.requestHits(start);
    else return undefined;
    if (scan.isLost) return undefined;
  }
  return scan.result();
}

/** Field numbers with their wire types. Source: rls.proto, ratelimit.proto. */
const tags = {
  domain: 0x0a,
  descriptors: 0x12,
  hitsAddend: 0x18,
  entries: 0x0a,
  limit: 0x12,
  ownHits: 0x1a,
  isNegativeHits: 0x20,
  wrappedValue: 0x08,
} as const;

/** The scan of one request. */
class Scan {
  readonly #bytes: Buffer;
  at = 0;
  /** Whether something was unexpected, so that the scan must not be used. */
  isLost = false;
  /** The bytes left out, except hits at the end: the start and end of each, alternating. */
  #cuts: number[] | undefined;
  #keptTo: number;
  #hitsAddend = 0;
  #descriptorCount = 0;
  #ownHits: Map<number, number> | undefined;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.#keptTo = bytes.length;
  }

  byte(): number {
    const value = this.#bytes[this.at];
    this.at += 1;
    if (value === undefined) this.isLost = true;
    return value ?? 0;
  }

  skipLength(): void {
    const length = this.#varint();
    this.at += length;
    if (this.at > this.#bytes.length) this.isLost = true;
  }

  requestHits(start: number): void {
    this.#hitsAddend = this.#varint();
    // The decoder caps larger values at 32 bits, so this request is left to it.
    if (this.#hitsAddend > 0xffffffff) this.isLost = true;
    // At the end, where encoders write it, it needs no cut: the rest is the request without it.
    if (this.at === this.#bytes.length) this.#keptTo = start;
    else this.#cut(start);
  }

  descriptor(): void {
    const length = this.#varint();
    const end = this.at + length;
    if (end > this.#bytes.length) this.isLost = true;
    while (this.at < end && !this.isLost) {
      const start = this.at;
      const tag = this.byte();
      if (tag === tags.entries || tag === tags.limit) this.skipLength();
      else if (tag === tags.isNegativeHits) this.#varint();
      else if (tag === tags.ownHits) this.#descriptorHits(start);
      else this.isLost = true;
      if (this.at > end) this.isLost = true;
    }
    this.#descriptorCount += 1;
  }

  result(): ScannedRequest {
    const identity =
      this.#cuts === undefined
        ? { bytes: this.#bytes, end: this.#keptTo, isCut: false }
        : this.#cutIdentity(this.#cuts);
    return { identity, hitsAddend: this.#hitsAddend, ownHits: this.#ownHits };
  }

  #cutIdentity(cuts: readonly number[]): RequestIdentity {
    const bytes = Buffer.allocUnsafe(this.#keptTo + cuts.length + 2);
    let end = 0;
    let keptFrom = 0;
    const places: number[] = [];
    for (let i = 0; i <= cuts.length; i += 2) {
      end += this.#bytes.copy(bytes, end, keptFrom, cuts[i] ?? this.#keptTo);
      keptFrom = cuts[i + 1] ?? 0;
      if (i < cuts.length) places.push(end);
    }
    for (const place of [...places, places.length]) end = bytes.writeUInt16LE(place, end);
    return { bytes, end, isCut: true };
  }

  /**
   * Reads a UInt64Value: empty for 0, or one field. If it is set twice, the last one counts, so the
   * request is not scanned.
   */
  #descriptorHits(start: number): void {
    const length = this.#varint();
    const end = this.at + length;
    let hits = 0;
    if (length > 0) {
      if (this.byte() !== tags.wrappedValue) this.isLost = true;
      hits = this.#varint();
    }
    this.#ownHits ??= new Map();
    if (this.at !== end || this.#ownHits.has(this.#descriptorCount)) this.isLost = true;
    this.#ownHits.set(this.#descriptorCount, hits);
    this.#cut(start);
  }

  /** Leaves out the bytes from `start` to the current position. */
  #cut(start: number): void {
    this.#cuts ??= [];
    this.#cuts.push(start, this.at);
  }

  /** Reads a number below 2^53. Sets `isLost` for anything longer. */
  #varint(): number {
    let value = 0;
    let factor = 1;
    for (let count = 0; count < 8; count += 1) {
      const byte = this.byte();
      value += (byte & 127) * factor;
      if (byte < 128) {
        if (value > Number.MAX_SAFE_INTEGER) this.isLost = true;
        return value;
      }
      factor *= 128;
    }
    this.isLost = true;
    return 0;
  }
}
