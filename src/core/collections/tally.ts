/** Sums by key, which rise and fall. A key whose sum falls to 0 takes no memory. */
export class Tally<K> {
  readonly #sums = new Map<K, number>();

  /** Returns the sum of a key, at least 0. */
  get(key: K): number {
    return this.#sums.get(key) ?? 0;
  }

  /** @param change negative for a decrease. @returns the new sum */
  add(key: K, change: number): number {
    const sum = this.get(key) + change;
    if (sum > 0) this.#sums.set(key, sum);
    else this.#sums.delete(key);
    return sum;
  }

  keys(): Iterable<K> {
    return this.#sums.keys();
  }

  /** Number of keys with a sum above 0. */
  get size(): number {
    return this.#sums.size;
  }
}
