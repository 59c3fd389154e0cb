import { assert, ServiceError } from "../../core/base/errors.js";
import type { Bucket } from "../../core/limits/bucket.js";
import type { BucketTable } from "../../core/limits/gcra.js";
import { shortKey } from "../../core/limits/key.js";
import type { LimitKey } from "../../core/limits/limit.js";

/** Below this number of keys, drained ones stay. Above, they go when the number has doubled. */
const sweptFromCount = 200_000;

/** Initial number of places. It is doubled when more are needed. */
const firstPlacesCount = 1_024;

/** Numbers per bucket: its level, its time, when it will have drained, and its key's turn. */
const numbersEach = 4;

/** A key, and the place of its bucket at the last use. */
export interface PlacedKey {
  readonly key: LimitKey;
  place: number;
  /** The turn of the key at its place, from 1. 0 until it is first used. */
  turn: number;
}

/**
 * Buckets of a simulation. Drained ones are swept when it is full. The values that change with
 * every call are numbers in one array: as objects, they would cause most of the garbage collector's
 * work, and each would add memory accesses that a processor waits for.
 */
export class SimulatedBuckets implements BucketTable {
  readonly #keysMax: number;
  /** The place of each key's bucket among the numbers. */
  readonly #places = new Map<LimitKey, number>();
  readonly #freePlaces: number[] = [];
  #numbers = new Float64Array(numbersEach * firstPlacesCount);
  #placeCount = 0;
  #nowUs = 0;
  /** Number of keys from which a sweep for drained ones is worthwhile. */
  #sweepCount = sweptFromCount;

  /** @param keysMax maximum number of keys with hits in use */
  constructor(keysMax: number) {
    this.#keysMax = keysMax;
    // The first place belongs to no key: keys that were not used yet point to it.
    this.#newPlace();
  }

  /**
   * Sets the time, and makes room for this many new keys.
   *
   * @throws ServiceError STORE_FULL
   */
  begin(nowUs: number, newCount: number): void {
    this.#nowUs = nowUs;
    if (this.#places.size + newCount > Math.min(this.#keysMax, this.#sweepCount)) this.#sweep();
  }

  get(key: LimitKey): Bucket | undefined {
    const place = this.#places.get(key);
    return place === undefined ? undefined : this.at(place);
  }

  set(key: LimitKey, bucket: Bucket, timeToFullUs: number): void {
    this.setAt(this.#places.get(key) ?? this.#give(key), bucket, timeToFullUs);
  }

  delete(key: LimitKey): void {
    const place = this.#places.get(key);
    if (place !== undefined) this.deleteAt(place);
  }

  /** Returns the place of a key's bucket, even if that is empty. Valid until `begin`. */
  placeOf(placed: PlacedKey): number {
    if (this.#numbers[placed.place + 3] === placed.turn) return placed.place;
    placed.place = this.#places.get(placed.key) ?? this.#give(placed.key);
    placed.turn = this.#numbers[placed.place + 3] ?? 0;
    return placed.place;
  }

  /** Returns the bucket at a place. Undefined: nothing is in use. */
  at(place: number): Bucket | undefined {
    if ((this.#numbers[place + 2] ?? 0) <= this.#nowUs) return undefined;
    return { level: this.#numbers[place] ?? 0, tUs: this.#numbers[place + 1] ?? 0 };
  }

  /** Puts a bucket at a place. */
  setAt(place: number, { level, tUs }: Bucket, timeToFullUs: number): void {
    this.#numbers[place] = level;
    this.#numbers[place + 1] = tUs;
    this.#numbers[place + 2] = this.#nowUs + timeToFullUs;
  }

  /** Empties a place. Its key is removed when drained ones are swept. */
  deleteAt(place: number): void {
    this.#numbers[place + 2] = 0;
  }

  #give(key: LimitKey): number {
    const place = this.#freePlaces.pop() ?? this.#newPlace();
    this.#places.set(key, place);
    this.#numbers[place + 2] = 0;
    return place;
  }

  #newPlace(): number {
    const place = numbersEach * this.#placeCount;
    this.#placeCount += 1;
    if (place >= this.#numbers.length) {
      const numbers = new Float64Array(2 * this.#numbers.length);
      numbers.set(this.#numbers);
      this.#numbers = numbers;
    }
    this.#numbers[place + 3] = 1;
    return place;
  }

  #sweep(): void {
    for (const [key, place] of this.#places) {
      if ((this.#numbers[place + 2] ?? 0) > this.#nowUs) continue;
      this.#places.delete(key);
      this.#freePlaces.push(place);
      // Holders of this place must look it up again.
      this.#numbers[place + 3] = (this.#numbers[place + 3] ?? 0) + 1;
    }
    this.#sweepCount = Math.max(sweptFromCount, 2 * this.#places.size);
    // Otherwise, the next key would check all of them again.
    if (this.#places.size > 0.9 * this.#keysMax) throw new ServiceError("STORE_FULL");
  }
}

/**
 * Buckets of one call by short keys that are always the same: the algorithm compares keys and looks
 * buckets up by them, and the real keys are long, many, and far away in memory.
 */
export class CallBuckets implements BucketTable {
  readonly #buckets: SimulatedBuckets;
  readonly #keys: LimitKey[] = [];
  readonly #indexes = new Map<LimitKey, number>();
  readonly #places: number[] = [];
  #count = 0;

  constructor(buckets: SimulatedBuckets) {
    this.#buckets = buckets;
  }

  /** Starts another call. */
  begin(): void {
    this.#count = 0;
  }

  /** Returns the short name of a key in this call. The same key always gets the same name. */
  keyOf(placed: PlacedKey): LimitKey {
    const place = this.#buckets.placeOf(placed);
    let index = 0;
    while (index < this.#count && this.#places[index] !== place) index += 1;
    if (index === this.#count) {
      this.#places[index] = place;
      this.#count += 1;
    }
    return this.#keys[index] ?? this.#newKey(index);
  }

  get(key: LimitKey): Bucket | undefined {
    return this.#buckets.at(this.#placeOf(key));
  }

  set(key: LimitKey, bucket: Bucket, timeToFullUs: number): void {
    this.#buckets.setAt(this.#placeOf(key), bucket, timeToFullUs);
  }

  delete(key: LimitKey): void {
    this.#buckets.deleteAt(this.#placeOf(key));
  }

  /** Calls have at most `requestChargesMax` keys. */
  #newKey(index: number): LimitKey {
    const key = shortKey({ a: index, b: 0, c: 0, d: 0 });
    this.#keys.push(key);
    this.#indexes.set(key, index);
    return key;
  }

  #placeOf(key: LimitKey): number {
    const place = this.#places[this.#indexes.get(key) ?? 0];
    assert(place !== undefined, "the law asks for keys of the call");
    return place;
  }
}
