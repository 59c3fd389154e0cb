import { SpaceSaving } from "../core/collections/space-saving.js";
import { CallerDays, windowLengthsUs } from "./caller-days.js";

const dayUs = 86_400_000_000;

/** Offsets of the last time, the day, its hits and all hits among the numbers of a live caller. */
const [lastAt, dayAt, hitsAt, totalAt] = [0, 1, 2, 3];

/** Offset of the start, the count and the maximum of each window, after the numbers above. */
const windowsAt = 4;
const numberCount = windowsAt + 3 * windowLengthsUs.length;

/** Maximum number of callers whose requests are counted although they are not followed. */
const countedMax = 1_000;

/** Minimum number of requests of a heavy caller. */
const heavyHitsMin = 50;

/** How a limit would drain a caller's bucket. */
export type ObservedDrain =
  /** At each of these rates, in hits per microsecond. */
  | { readonly kind: "rates"; readonly ratesPerUs: readonly number[] }
  /** Completely, at the end of each window. */
  | { readonly kind: "windows"; readonly periodUs: number };

/**
 * Follows the callers of one limit. For each caller and each rate that the limit could have, it
 * keeps the level of a bucket that refuses nothing. The highest level of a day is the smallest
 * burst that lets all requests of that day pass.
 *
 * Memory depends on the number of callers and not on the number of requests. After `halve`, it
 * follows a sample of the callers, plus the callers that send a large part of the requests. If such
 * a caller is not in the sample, it is followed from the time at which it is recognized.
 */
export class CallerObserver {
  readonly days: CallerDays;
  readonly #drain: ObservedDrain;
  readonly #rateCount: number;
  readonly #stepUs: number;
  readonly #places = new Map<string, number>();
  #numbers: Float64Array;
  #levels: Float64Array;
  #most: Float32Array;
  readonly #unfollowed = new SpaceSaving<string>(countedMax);
  #heavyRatio: number;
  #totalHits = 0;

  /**
   * @param heavyRatio part of all hits from which on a caller is always followed
   * @param stepUs hits may have come at any time within this step; 0: exactly when they are taken
   */
  constructor(drain: ObservedDrain, heavyRatio: number, stepUs = 0) {
    this.#drain = drain;
    this.#stepUs = stepUs;
    this.#heavyRatio = heavyRatio;
    this.#rateCount = drain.kind === "rates" ? drain.ratesPerUs.length : 1;
    this.days = new CallerDays(this.#rateCount);
    this.#numbers = new Float64Array(numberCount * 64);
    this.#levels = new Float64Array(this.#rateCount * 64);
    this.#most = new Float32Array(this.#rateCount * 64);
  }

  /** Number of callers that are followed now. */
  get liveCount(): number {
    return this.#places.size;
  }

  /** Takes a request of a caller. If it is earlier than the last one, it counts as simultaneous. */
  take(key: string, timeUs: number, hits: number): void {
    this.#totalHits += hits;
    let place = this.#places.get(key);
    if (place === undefined) {
      if (!this.#isSampled(key) && !this.#becomesHeavy(key, hits)) return;
      place = this.#begin(key, timeUs);
    }
    // Creating a view for each request would take as long as everything else.
    const numbers = this.#numbers;
    const from = place * numberCount;
    const lastUs = numbers[from + lastAt] ?? 0;
    const nowUs = Math.max(timeUs, lastUs);
    const day = Math.floor(nowUs / dayUs);
    if (day !== numbers[from + dayAt]) {
      this.#endDay(key, place);
      numbers[from + dayAt] = day;
    }
    numbers[from + hitsAt] = (numbers[from + hitsAt] ?? 0) + hits;
    numbers[from + totalAt] = (numbers[from + totalAt] ?? 0) + hits;
    countWindows(numbers, from + windowsAt, { nowUs, hits });
    this.#charge(place, nowUs - lastUs, { nowUs, hits });
    numbers[from + lastAt] = nowUs;
  }

  /** Records the days that have not ended. Nothing may be taken afterwards. */
  finish(): CallerDays {
    for (const [key, place] of this.#places) this.#endDay(key, place);
    return this.days;
  }

  /**
   * Forgets every second caller that is not heavy: those in the upper half of hashes. The rest is a
   * sample of all callers, each with all of its requests. If nearly all callers are heavy, fewer of
   * them are the next time.
   */
  halve(): void {
    const before = this.liveCount + this.days.rowCount;
    this.days.sampledRatio /= 2;
    this.days.heavy.clear();
    for (const [key, place] of this.#places) {
      const total = this.#numbers[place * numberCount + totalAt] ?? 0;
      if (this.#isHeavy(total)) this.days.heavy.add(key);
    }
    const isKept = (key: string): boolean => this.#isSampled(key) || this.days.heavy.has(key);
    this.days.keepOnly(isKept);
    const kept = [...this.#places].filter(([key]) => isKept(key));
    this.#places.clear();
    for (const [place, [key, old]] of kept.entries()) {
      this.#places.set(key, place);
      for (const [array, size] of this.#arrays()) {
        array.copyWithin(place * size, old * size, (old + 1) * size);
      }
    }
    if (this.liveCount + this.days.rowCount > 0.75 * before) this.#heavyRatio *= 2;
  }

  #isSampled(key: string): boolean {
    const { sampledRatio } = this.days;
    return sampledRatio === 1 || hashOf(key) < sampledRatio * 2 ** 32;
  }

  #isHeavy(hits: number): boolean {
    return hits >= Math.max(heavyHitsMin, this.#heavyRatio * this.#totalHits);
  }

  #becomesHeavy(key: string, hits: number): boolean {
    this.#unfollowed.add(key, hits);
    if (!this.#isHeavy(this.#unfollowed.leastCountOf(key))) return false;
    this.days.heavy.add(key);
    return true;
  }

  #arrays(): readonly (readonly [Float64Array | Float32Array, number])[] {
    return [
      [this.#numbers, numberCount],
      [this.#levels, this.#rateCount],
      [this.#most, this.#rateCount],
    ];
  }

  #begin(key: string, timeUs: number): number {
    const place = this.#places.size;
    if ((place + 1) * numberCount > this.#numbers.length) {
      this.#numbers = doubled(this.#numbers);
      this.#levels = doubled(this.#levels);
      const most = new Float32Array(2 * this.#most.length);
      most.set(this.#most);
      this.#most = most;
    }
    for (const [array, size] of this.#arrays()) array.fill(0, place * size, (place + 1) * size);
    this.#numbers[place * numberCount + lastAt] = timeUs;
    this.#numbers[place * numberCount + dayAt] = Math.floor(timeUs / dayUs);
    this.#places.set(key, place);
    return place;
  }

  #charge(
    place: number,
    elapsedUs: number,
    { nowUs, hits }: { readonly nowUs: number; readonly hits: number },
  ): void {
    const from = place * this.#rateCount;
    if (this.#drain.kind === "windows") {
      const { periodUs } = this.#drain;
      const isNew = Math.floor(nowUs / periodUs) > Math.floor((nowUs - elapsedUs) / periodUs);
      const level = (isNew ? 0 : (this.#levels[from] ?? 0)) + hits;
      this.#rise(from, level, level);
      return;
    }
    const { ratesPerUs } = this.#drain;
    for (let rate = 0; rate < ratesPerUs.length; rate += 1) {
      const [before, ratePerUs] = [this.#levels[from + rate] ?? 0, ratesPerUs[rate] ?? 0];
      const level = Math.max(before - elapsedUs * ratePerUs, 0) + hits;
      // The hits of one step may have come at its end, and those of the next step at its start.
      const gapUs = Math.max(elapsedUs - this.#stepUs, 0);
      const most = this.#stepUs === 0 ? level : Math.max(before - gapUs * ratePerUs, 0) + hits;
      this.#rise(from + rate, level, most);
    }
  }

  #rise(at: number, level: number, most: number): void {
    this.#levels[at] = level;
    if (most > (this.#most[at] ?? 0)) this.#most[at] = most;
  }

  #endDay(key: string, place: number): void {
    const numbers = this.#numbers.subarray(place * numberCount, (place + 1) * numberCount);
    const most = this.#most.subarray(place * this.#rateCount, (place + 1) * this.#rateCount);
    const busiest = windowLengthsUs.map((_, i) => numbers[windowsAt + 3 * i + 2] ?? 0);
    const hits = numbers[hitsAt] ?? 0;
    this.days.add(numbers[dayAt] ?? 0, { key, hits, busiest, levels: most });
    numbers[hitsAt] = 0;
    numbers.fill(0, windowsAt);
    most.fill(0);
  }
}

/** Counts hits in the windows of a live caller, whose numbers start at `from`. */
function countWindows(
  numbers: Float64Array,
  from: number,
  { nowUs, hits }: { readonly nowUs: number; readonly hits: number },
): void {
  let at = from;
  for (const lengthUs of windowLengthsUs) {
    const start = Math.floor(nowUs / lengthUs);
    if (start !== numbers[at]) {
      numbers[at] = start;
      numbers[at + 1] = 0;
    }
    const count = (numbers[at + 1] ?? 0) + hits;
    numbers[at + 1] = count;
    if (count > (numbers[at + 2] ?? 0)) numbers[at + 2] = count;
    at += 3;
  }
}

function doubled(array: Float64Array): Float64Array<ArrayBuffer> {
  const larger = new Float64Array(2 * array.length);
  larger.set(array);
  return larger;
}

/**
 * Returns a hash of 32 bits, of which the upper ones depend on the whole text.
 *
 * Source: FNV-1a; MurmurHash3, fmix32.
 */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
