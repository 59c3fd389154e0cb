import { assert, ServiceError } from "../../core/base/errors.js";
import type { Bucket } from "../../core/limits/bucket.js";
import type { BucketTable } from "../../core/limits/gcra.js";
import { shortKey } from "../../core/limits/key.js";
import type { LimitKey } from "../../core/limits/limit.js";

/** As long as there are fewer keys, drained ones stay; else whenever their number has doubled. */
const sweptFromCount = 200_000;

/** Places that there are at first; when more are needed, there are twice as many. */
const firstPlacesCount = 1_024;

/** Numbers of a bucket: its level, its time, when it will have drained, and the turn of its key. */
const numbersEach = 4;

/** A key, and where its bucket was when it was asked last. */
export interface PlacedKey {
  readonly key: LimitKey;
  place: number;
  /** Which key in turn it was that had the place, from 1; 0 as long as it was not asked. */
  turn: number;
}

/**
 * The buckets of a trial, the drained ones swept when it is full. What changes with every call are
 * numbers in one array: as objects they would be most of what the collector has to do, and each of
 * them some places of memory more that a processor waits for.
 */
export class SimulatedBuckets implements BucketTable {
  readonly #keysMax: number;
  /** Where the bucket of a key stands among the numbers. */
  readonly #places = new Map<LimitKey, number>();
  readonly #freePlaces: number[] = [];
  #numbers = new Float64Array(numbersEach * firstPlacesCount);
  #placeCount = 0;
  #nowUs = 0;
  /** Keys from which on it is worth to look which of them have drained. */
  #sweepCount = sweptFromCount;

  /** @param keysMax the most keys that hold something */
  constructor(keysMax: number) {
    this.#keysMax = keysMax;
    // The first place is nobody's: there keys begin that were not asked yet.
    this.#newPlace();
  }

  /**
   * It is that time now, and so many keys may come.
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

  /** Where the bucket of a key is, also of one that holds nothing, until `begin`. */
  placeOf(placed: PlacedKey): number {
    if (this.#numbers[placed.place + 3] === placed.turn) return placed.place;
    placed.place = this.#places.get(placed.key) ?? this.#give(placed.key);
    placed.turn = this.#numbers[placed.place + 3] ?? 0;
    return placed.place;
  }

  /** What is there; undefined: nothing. */
  at(place: number): Bucket | undefined {
    if ((this.#numbers[place + 2] ?? 0) <= this.#nowUs) return undefined;
    return { level: this.#numbers[place] ?? 0, tUs: this.#numbers[place + 1] ?? 0 };
  }

  /** Puts a bucket there. */
  setAt(place: number, { level, tUs }: Bucket, timeToFullUs: number): void {
    this.#numbers[place] = level;
    this.#numbers[place + 1] = tUs;
    this.#numbers[place + 2] = this.#nowUs + timeToFullUs;
  }

  /** Nothing is there any more. The key leaves when drained ones are swept. */
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
      // Who knows the place has to ask for it anew.
      this.#numbers[place + 3] = (this.#numbers[place + 3] ?? 0) + 1;
    }
    this.#sweepCount = Math.max(sweptFromCount, 2 * this.#places.size);
    // Else the next key would look at all of them again.
    if (this.#places.size > 0.9 * this.#keysMax) throw new ServiceError("STORE_FULL");
  }
}

/**
 * The buckets of one call by short keys that are always the same ones: the law compares keys and
 * looks buckets up by them, and the real ones are long, many, and far away in memory.
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

  /** Another call begins. */
  begin(): void {
    this.#count = 0;
  }

  /** What a key is called in this call: the same as the one before where it is the same key. */
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
