/**
 * The parts of a RateLimitRequest that change from call to call, apart from those that do not: what
 * is asked stays the same for thousands of calls, only the hits differ. So a request is known by
 * its bytes without its hits, and decoded once.
 */
export interface ScannedRequest {
  /** The request without its hits: equal for two requests only if they ask the same. */
  readonly identity: string;
  /** `hits_addend` of the request; 0 when it is not set. */
  readonly hitsAddend: number;
  /** `hits_addend` of each descriptor that has one, by its position among the descriptors. */
  readonly ownHits: ReadonlyMap<number, number> | undefined;
}

/** Longer requests are decoded each time: few are, and remembering them would cost memory. */
export const scannedBytesMax = 1_024;

/**
 * Scans a request's bytes. Undefined for what it does not know (long ones, unknown or malformed
 * fields, hits beyond 2^53): those take the long way through the decoder, which says what is wrong.
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

/** The same bytes as a Buffer; what transports hand over is one already. */
export function asBuffer(bytes: Uint8Array): Buffer {
  if (Buffer.isBuffer(bytes)) return bytes;
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
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

/**
 * Stands where hits were cut out, with the place: no byte of a request reads like it, so a request
 * with hits at one place is never taken for another without them.
 */
const cutMark = "\uffff";

/** A walk through one request. */
class Scan {
  readonly #bytes: Buffer;
  at = 0;
  /** Something is not as expected: nothing of the scan may be used. */
  isLost = false;
  #identity = "";
  #keptFrom = 0;
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
    // The decoder keeps 32 bits of what is longer; that is its business.
    if (this.#hitsAddend > 0xffffffff) this.isLost = true;
    // Where encoders put it, at the end, it leaves no mark: the request is the same without it.
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
    const rest = this.#bytes.toString("latin1", this.#keptFrom, this.#keptTo);
    const identity = this.#identity === "" ? rest : this.#identity + rest;
    return { identity, hitsAddend: this.#hitsAddend, ownHits: this.#ownHits };
  }

  /**
   * A UInt64Value: empty for 0, or one field; set twice means the last one, so it is not scanned.
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

  /** Leaves out what stands between `start` and here. */
  #cut(start: number): void {
    const kept = this.#bytes.toString("latin1", this.#keptFrom, start);
    this.#identity += `${kept}${cutMark}${start}${cutMark}`;
    this.#keptFrom = this.at;
  }

  /** A number below 2^53; anything longer is lost. */
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
