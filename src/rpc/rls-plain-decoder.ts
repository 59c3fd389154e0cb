import type { DescriptorEntry } from "../core/key.js";
import {
  type DescriptorQuery,
  descriptorCountMax,
  entryCountMax,
  type RateLimitQuery,
  textLengthMax,
} from "../decide/query.js";

/**
 * A RateLimitRequest that Envoy sends every day, decoded by hand: ASCII texts, entries, hits, no
 * limit of its own. It is what a request costs whose key was not asked before, and there the
 * general decoder costs more than everything else together (5 us against half a microsecond).
 *
 * Undefined for all else: that takes the long way, which also says what is wrong. Held equal to it
 * by property tests. Fields come in the order of their numbers, as every encoder writes them.
 *
 * Source: protobuf.dev/programming-guides/encoding; fields of RateLimitRequest and
 * RateLimitDescriptor.
 */
export function decodePlainRequest(bytes: Buffer): RateLimitQuery | undefined {
  const reader = new Reader(bytes);
  const domain = reader.text(tags.domain, bytes.length);
  const descriptors: Plain[] = [];
  while (reader.next(tags.descriptors, bytes.length)) descriptors.push(reader.descriptor());
  const hitsAddend = reader.next(tags.hitsAddend, bytes.length) ? reader.small() : 0;
  if (reader.isLost || reader.at !== bytes.length) return undefined;
  if (domain === "" || descriptors.length === 0) return undefined;
  if (descriptors.length > descriptorCountMax) return undefined;
  const hits = hitsAddend === 0 ? 1 : hitsAddend;
  return {
    domain,
    descriptors: descriptors.map(
      ({ entries, ownHits, isRefund }): DescriptorQuery => ({
        entries,
        hits: ownHits ?? hits,
        isRefund,
      }),
    ),
  };
}

interface Plain {
  readonly entries: readonly DescriptorEntry[];
  readonly ownHits: number | undefined;
  readonly isRefund: boolean;
}

/** Field numbers with their wire types. Source: rls.proto, ratelimit.proto. */
const tags = {
  domain: 0x0a,
  descriptors: 0x12,
  hitsAddend: 0x18,
  entries: 0x0a,
  entryKey: 0x0a,
  entryValue: 0x12,
  ownHits: 0x1a,
  isNegativeHits: 0x20,
  wrappedValue: 0x08,
} as const;

/** Reads forward; what it does not expect makes it lost, and then nothing it read counts. */
class Reader {
  readonly #bytes: Buffer;
  at = 0;
  isLost = false;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** Steps over the tag when it comes next. */
  next(tag: number, end: number): boolean {
    if (this.isLost || this.at >= end || this.#bytes[this.at] !== tag) return false;
    this.at += 1;
    return true;
  }

  /** A text field; empty when it does not come next. */
  text(tag: number, end: number): string {
    if (!this.next(tag, end)) return "";
    const length = this.small();
    const start = this.at;
    this.at += length;
    if (this.at > end || length > textLengthMax) this.isLost = true;
    if (this.isLost) return "";
    for (let i = start; i < this.at; i += 1) {
      if ((this.#bytes[i] ?? 0) > 127) this.isLost = true;
    }
    return this.#bytes.toString("latin1", start, this.at);
  }

  descriptor(): Plain {
    const end = this.small() + this.at;
    if (end > this.#bytes.length) this.isLost = true;
    const entries: DescriptorEntry[] = [];
    while (this.next(tags.entries, end)) entries.push(this.#entry(end));
    const ownHits = this.next(tags.ownHits, end) ? this.#wrapped(end) : undefined;
    const isRefund = this.next(tags.isNegativeHits, end) && this.small() !== 0;
    if (this.at !== end || entries.length === 0 || entries.length > entryCountMax) {
      this.isLost = true;
    }
    return { entries, ownHits, isRefund };
  }

  #entry(descriptorEnd: number): DescriptorEntry {
    const end = this.small() + this.at;
    if (end > descriptorEnd) this.isLost = true;
    const key = this.text(tags.entryKey, end);
    const value = this.text(tags.entryValue, end);
    if (this.at !== end || key === "" || key.length + value.length > textLengthMax) {
      this.isLost = true;
    }
    return { key, value };
  }

  /** A UInt64Value: empty for 0, or one field. */
  #wrapped(descriptorEnd: number): number {
    const end = this.small() + this.at;
    const value = this.next(tags.wrappedValue, end) ? this.small() : 0;
    if (this.at !== end || end > descriptorEnd) this.isLost = true;
    return value;
  }

  /** A number below 2^28, which is as much as a length or usual hits take. */
  small(): number {
    let value = 0;
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = this.#bytes[this.at];
      this.at += 1;
      if (byte === undefined) break;
      value |= (byte & 127) << shift;
      if (byte < 128) return value;
    }
    this.isLost = true;
    return 0;
  }
}
