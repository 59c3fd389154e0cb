/** Once the map is full, one in this many missed keys is added. */
export const wantedOneIn = 8;

/**
 * A bounded cache with two generations: when the younger one is full, the older one is dropped.
 * Unlike an LRU, it needs no list update at each access and has no pause for eviction. It holds
 * between half of the bound and the whole bound, plus one entry if entries have a size.
 */
export class GenerationalMap<K, V> {
  readonly #generationSizeMax: number;
  readonly #sizeOf: ((key: K, value: V) => number) | undefined;
  #youngSize = 0;
  #missesSinceWanted = 0;
  #young = new Map<K, V>();
  #old = new Map<K, V>();

  /**
   * @param sizeMax maximum total size, at least 2
   * @param sizeOf size of an entry, which must not change; default 1
   */
  constructor(sizeMax: number, sizeOf?: (key: K, value: V) => number) {
    this.#generationSizeMax = Math.max(1, Math.floor(sizeMax / 2));
    this.#sizeOf = sizeOf;
  }

  /** The current number of entries. */
  get size(): number {
    return this.#young.size + this.#old.size;
  }

  /**
   * Whether a missed key should be added. Always true until a generation is full, then once in
   * `wantedOneIn`. If there are more keys than fit, a key seen once would evict one that may recur,
   * and short-lived entries are the most expensive ones for the garbage collector.
   */
  wantsMore(): boolean {
    if (this.#old.size === 0) return true;
    this.#missesSinceWanted += 1;
    if (this.#missesSinceWanted < wantedOneIn) return false;
    this.#missesSinceWanted = 0;
    return true;
  }

  /** Returns the value of a key and marks it as used. Undefined if there is none. */
  get(key: K): V | undefined {
    const young = this.#young.get(key);
    if (young !== undefined) return young;
    const old = this.#old.get(key);
    if (old !== undefined) this.set(key, old);
    return old;
  }

  /** Whether there is a value. Does not mark it as used. */
  has(key: K): boolean {
    return this.#young.has(key) || this.#old.has(key);
  }

  /** Sets a value. A replaced value must have the same size. */
  set(key: K, value: V): void {
    if (!this.#young.has(key)) {
      const size = this.#sizeOf?.(key, value) ?? 1;
      if (this.#youngSize + size > this.#generationSizeMax && this.#young.size > 0) {
        this.#old = this.#young;
        this.#young = new Map();
        this.#youngSize = 0;
      } else {
        this.#old.delete(key);
      }
      this.#youngSize += size;
    }
    this.#young.set(key, value);
  }

  clear(): void {
    this.#youngSize = 0;
    this.#young = new Map();
    this.#old = new Map();
  }
}
