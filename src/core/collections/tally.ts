/** Sums by key, of what comes and goes again: a key of which nothing is left takes no room. */
export class Tally<K> {
  readonly #sums = new Map<K, number>();

  /** From 0. */
  get(key: K): number {
    return this.#sums.get(key) ?? 0;
  }

  /** @param change below 0 for what goes. @returns what there is then */
  add(key: K, change: number): number {
    const sum = this.get(key) + change;
    if (sum > 0) this.#sums.set(key, sum);
    else this.#sums.delete(key);
    return sum;
  }

  keys(): Iterable<K> {
    return this.#sums.keys();
  }

  /** Keys of which something is there. */
  get size(): number {
    return this.#sums.size;
  }
}
