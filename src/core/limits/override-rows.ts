import type { DescriptorEntry } from "./key.js";
import type { Override } from "./override.js";

/** Part of a descriptor shape, which combines the number of entries and whether it is a prefix. */
const prefixFlag = 64;

/** An index of overrides that needs a few bytes each. The owner keeps everything else. */
export class OverrideRows<Kept extends { readonly id: string } = Override> {
  readonly #read: (kept: Kept) => Override | undefined;
  readonly #kept: Kept[] = [];
  readonly #domains: string[] = [];
  readonly #domainIndexes = new Map<string, number>();
  readonly #hashes: Int32Array;
  readonly #expiries: Float64Array;
  readonly #shapes: Uint8Array;
  readonly #domainOf: Uint32Array;

  /**
   * @param rowsMax maximum number of rows that will be added
   * @param read parses an override from its stored form
   */
  constructor(rowsMax: number, read: (kept: Kept) => Override | undefined) {
    this.#read = read;
    this.#hashes = new Int32Array(rowsMax);
    this.#expiries = new Float64Array(rowsMax);
    this.#shapes = new Uint8Array(rowsMax);
    this.#domainOf = new Uint32Array(rowsMax);
  }

  get count(): number {
    return this.#kept.length;
  }

  /** The domains of all rows. */
  get domains(): readonly string[] {
    return this.#domains;
  }

  /** Adds an override and its stored form. */
  add(kept: Kept, { domain, entries, isPrefix, expiresEpochMs }: Override): void {
    const row = this.#kept.length;
    this.#kept.push(kept);
    this.#hashes[row] = descriptorHash(domain, entries);
    this.#expiries[row] = expiresEpochMs ?? Number.POSITIVE_INFINITY;
    this.#shapes[row] = shapeOf(entries.length, isPrefix);
    this.#domainOf[row] = this.#indexOf(domain);
  }

  /** Copies a row of another index without parsing it. */
  addFrom(others: OverrideRows<Kept>, row: number): void {
    const kept = others.keptAt(row);
    if (kept === undefined) return;
    const own = this.#kept.length;
    this.#kept.push(kept);
    this.#hashes[own] = others.hashAt(row);
    this.#expiries[own] = others.expiryAt(row);
    this.#shapes[own] = others.#shapes[row] ?? 0;
    this.#domainOf[own] = this.#indexOf(others.#domains[others.#domainOf[row] ?? 0] ?? "");
  }

  /** The stored form of a row. */
  keptAt(row: number): Kept | undefined {
    return this.#kept[row];
  }

  /** The parsed override of a row. */
  overrideAt(row: number): Override | undefined {
    const kept = this.#kept[row];
    return kept === undefined ? undefined : this.#read(kept);
  }

  /** The ids of the overrides in these domains. */
  *idsOf(domains: readonly string[]): Iterable<string> {
    const wanted = new Set(domains.map((domain) => this.#domainIndexes.get(domain)));
    for (const [row, { id }] of this.#kept.entries()) {
      if (wanted.has(this.#domainOf[row])) yield id;
    }
  }

  /** When the override of a row expires, in milliseconds since 1970; Infinity if never. */
  expiryAt(row: number): number {
    return this.#expiries[row] ?? 0;
  }

  /** The hash of a row: see `descriptorHash`. */
  hashAt(row: number): number {
    return this.#hashes[row] ?? 0;
  }

  /** The shape of a row: see `shapeOf`. */
  shapeAt(row: number): number {
    return this.#shapes[row] ?? 0;
  }

  #indexOf(domain: string): number {
    const known = this.#domainIndexes.get(domain);
    if (known !== undefined) return known;
    const index = this.#domains.length;
    this.#domains.push(domain);
    this.#domainIndexes.set(domain, index);
    return index;
  }
}

/** Combines the number of entries, up to 32, and whether it is a prefix, in a number below 128. */
export function shapeOf(entryCount: number, isPrefix: boolean): number {
  return isPrefix ? entryCount | prefixFlag : entryCount;
}

/** A hash of a whole descriptor: 32 bits, signed. Equal hashes require a comparison. */
function descriptorHash(domain: string, entries: readonly DescriptorEntry[]): number {
  let hash = domainHash(domain);
  for (const entry of entries) hash = entryHash(hash, entry);
  return hash;
}

/** The initial hash of a descriptor. */
export function domainHash(domain: string): number {
  return textHash(hashOffset, domain);
}

/** The hash of a descriptor with one more entry. */
export function entryHash(before: number, { key, value }: DescriptorEntry): number {
  return textHash(textHash(before, key), value);
}

const hashOffset = 0x811c9dc5 | 0;
const hashPrime = 0x01000193;

/** The length is hashed first, so that different splits of a text differ. Source: FNV-1a. */
function textHash(before: number, text: string): number {
  let hash = Math.imul(before ^ text.length, hashPrime);
  for (let i = 0; i < text.length; i += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(i), hashPrime);
  }
  return hash;
}
