/** A key, the maximum of how often it occurred, and the possible error of that. */
export interface FrequentKey<K> {
  readonly key: K;
  readonly count: number;
  /** The key occurred at least `count - errorMax` times. */
  readonly errorMax: number;
}

interface Counted<K> {
  key: K;
  count: number;
  errorMax: number;
}

/**
 * Finds the most frequent keys of a stream with any number of keys, in constant memory.
 *
 * With m counters and n arrivals, every key that occurred more than n / m times is included, and no
 * count is too large by more than that. A new key replaces the one with the lowest count, and takes
 * over its count. An arrival takes O(log m).
 *
 * Example: m 2, arrivals a a b c: a has 2, and c has replaced b: 2, of which at most 1 is error.
 *
 * Source: Metwally, Agrawal and El Abbadi, "Efficient computation of frequent and top-k elements in
 * data streams" (2005), Space-Saving.
 */
export class SpaceSaving<K> {
  readonly #countersMax: number;
  readonly #places = new Map<K, number>();
  /** A heap, the lowest count first. */
  readonly #heap: Counted<K>[] = [];
  #totalCount = 0;

  /** @param countersMax maximum number of keys that are counted at once, at least 1 */
  constructor(countersMax: number) {
    this.#countersMax = Math.max(1, countersMax);
  }

  /** Number of all arrivals, of any key. */
  get totalCount(): number {
    return this.#totalCount;
  }

  /** Returns how often a key occurred at least. 0 if it is not counted now. */
  leastCountOf(key: K): number {
    const place = this.#places.get(key);
    const counted = place === undefined ? undefined : this.#heap[place];
    return counted === undefined ? 0 : counted.count - counted.errorMax;
  }

  /** Reports whether a key is counted now. */
  has(key: K): boolean {
    return this.#places.has(key);
  }

  /** Counts arrivals of a key, at least 1. @returns the key that it replaced; undefined: none */
  add(key: K, times = 1): K | undefined {
    this.#totalCount += times;
    const place = this.#places.get(key);
    if (place !== undefined) {
      const counted = this.#heap[place];
      if (counted === undefined) return undefined;
      counted.count += times;
      this.#sink(counted, place);
      return undefined;
    }
    if (this.#heap.length < this.#countersMax) {
      this.#heap.push({ key, count: times, errorMax: 0 });
      this.#rise(this.#heap.length - 1);
      return undefined;
    }
    const least = this.#heap[0];
    if (least === undefined) return undefined;
    const left = least.key;
    this.#places.delete(left);
    least.key = key;
    least.errorMax = least.count;
    least.count += times;
    this.#sink(least, 0);
    return left;
  }

  /** Returns the most frequent keys, at most `countMax`, the most frequent one first. */
  top(countMax: number): readonly FrequentKey<K>[] {
    const sorted = this.#heap.toSorted(
      (one, other) => other.count - one.count || one.errorMax - other.errorMax,
    );
    return sorted.slice(0, countMax).map((counted) => ({ ...counted }));
  }

  #rise(from: number): void {
    let place = from;
    const counted = this.#heap[place];
    if (counted === undefined) return;
    while (place > 0) {
      const parentPlace = (place - 1) >> 1;
      const parent = this.#heap[parentPlace];
      if (parent === undefined || parent.count <= counted.count) break;
      this.#put(parent, place);
      place = parentPlace;
    }
    this.#put(counted, place);
  }

  #sink(counted: Counted<K>, from: number): void {
    let place = from;
    for (;;) {
      const left = this.#heap[2 * place + 1];
      if (left === undefined) break;
      const right = this.#heap[2 * place + 2];
      const child = right !== undefined && right.count < left.count ? right : left;
      if (child.count >= counted.count) break;
      const childPlace = child === left ? 2 * place + 1 : 2 * place + 2;
      this.#put(child, place);
      place = childPlace;
    }
    this.#put(counted, place);
  }

  #put(counted: Counted<K>, place: number): void {
    this.#heap[place] = counted;
    this.#places.set(counted.key, place);
  }
}
