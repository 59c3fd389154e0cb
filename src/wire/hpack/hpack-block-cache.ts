import type { HeaderFields } from "../base/http2.js";

/** Maximum blocks that are remembered: a proxy's calls differ by their method and little else. */
export const cachedBlocksMax = 8;

/** Longer blocks are decoded each time: comparing them would cost about as much. */
export const cachedBlockBytesMax = 256;

/**
 * Decoded header blocks by their bytes, as long as the table does not change. A proxy sends nearly
 * the same block for every call: its fields are in the table after the first.
 */
export class HpackBlockCache {
  readonly #blocks: Uint8Array[] = [];
  readonly #fields: HeaderFields[] = [];
  /** The block that is replaced next. */
  #oldest = 0;
  /** The block that was found last: most often it is found again. */
  #latest = 0;
  #generation = 0;

  /** Forgets everything that was remembered in another generation of the table. */
  enter(generation: number): void {
    if (generation === this.#generation) return;
    this.#generation = generation;
    this.#oldest = 0;
    this.#latest = 0;
    this.#blocks.length = 0;
    this.#fields.length = 0;
  }

  /** Returns the fields of the bytes from `start` to below `end`. Undefined for a new block. */
  find(bytes: Buffer, start: number, end: number): HeaderFields | undefined {
    const latest = this.#blocks[this.#latest];
    if (latest === undefined) return undefined;
    const length = end - start;
    if (latest.length === length && isAt(latest, bytes, start)) return this.#fields[this.#latest];
    for (let i = 0; i < this.#blocks.length; i += 1) {
      const block = this.#blocks[i];
      if (block?.length !== length || !isAt(block, bytes, start)) continue;
      this.#latest = i;
      return this.#fields[i];
    }
    return undefined;
  }

  /** Remembers a block that changed nothing in the table. The bytes are copied. */
  remember(block: Uint8Array, fields: HeaderFields): void {
    if (block.length > cachedBlockBytesMax) return;
    this.#blocks[this.#oldest] = Uint8Array.from(block);
    this.#fields[this.#oldest] = fields;
    this.#latest = this.#oldest;
    this.#oldest = (this.#oldest + 1) % cachedBlocksMax;
  }
}

/** Compares from the end, because blocks of one peer begin alike. */
function isAt(block: Uint8Array, bytes: Buffer, start: number): boolean {
  for (let i = block.length - 1; i >= 0; i -= 1) {
    if (block[i] !== bytes[start + i]) return false;
  }
  return true;
}
