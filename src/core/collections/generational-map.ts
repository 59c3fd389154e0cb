/** Of how many missed keys one is held, once others have to leave for it. */
export const wantedOneIn = 8;

/**
 * A bounded map that forgets what was not looked at for a while: two generations, the older one
 * dropped whole when the younger one is full. No list to keep in order at each look, as an LRU has,
 * and no pause to shrink; between half of the bound and all of it is held, or one entry more where
 * entries have a size.
 */
export class GenerationalMap<K, V> {
  readonly #generationSizeMax: number;
  readonly #sizeOf: ((key: K, value: V) => number) | undefined;
  #youngSize = 0;
  #missesSinceWanted = 0;
  #young = new Map<K, V>();
  #old = new Map<K, V>();

  /**
   * @param sizeMax the most entries, from 2
   * @param sizeOf how much of that an entry takes, always the same; absent: 1
   */
  constructor(sizeMax: number, sizeOf?: (key: K, value: V) => number) {
    this.#generationSizeMax = Math.max(1, Math.floor(sizeMax / 2));
    this.#sizeOf = sizeOf;
  }

  /** Entries held now. */
  get size(): number {
    return this.#young.size + this.#old.size;
  }

  /**
   * Whether a key that was just missed is worth holding. Always until a generation is full; then
   * one in `wantedOneIn`: among more keys than fit, one that came once pushes out one that may come
   * again, and what lives just long enough to be moved is what the collector pays most for.
   */
  wantsMore(): boolean {
    if (this.#old.size === 0) return true;
    this.#missesSinceWanted += 1;
    if (this.#missesSinceWanted < wantedOneIn) return false;
    this.#missesSinceWanted = 0;
    return true;
  }

  /** The value of a key, which counts as a look; undefined when there is none (any more). */
  get(key: K): V | undefined {
    const young = this.#young.get(key);
    if (young !== undefined) return young;
    const old = this.#old.get(key);
    if (old !== undefined) this.set(key, old);
    return old;
  }

  /** Whether there is a value, without counting as a look. */
  has(key: K): boolean {
    return this.#young.has(key) || this.#old.has(key);
  }

  /** Of a key that is there the value is exchanged for one of the same size. */
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
