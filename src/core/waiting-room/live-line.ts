import { numberAtPlace, openShuffles, placeOf } from "./places.js";
import { calledBit, frontBytesMax, type LineShuffle, liveBlockSize } from "./room-line.js";

/**
 * The visitors who are present in a line, as its leader knows from the words that it has read: one
 * byte for each number, and a count for each block of places. A place that was called or skipped is
 * no longer present.
 */
export class LiveLine {
  #shuffles: readonly LineShuffle[];
  #calledPlace: number;
  /** The number of the first byte, at most `firstNumber`. */
  #base: number;
  /** Numbers below it were read. */
  #end: number;
  #isLive = new Uint8Array(liveBlockSize);
  /** Present visitors of each block of places, from the block of `#calledPlace` on. */
  #counts: number[] = [];
  #liveCount = 0;
  #leftCount = 0;

  constructor(start: { readonly calledPlace: number; readonly shuffles: readonly LineShuffle[] }) {
    this.#shuffles = start.shuffles;
    this.#calledPlace = start.calledPlace;
    this.#base = firstNumber(start.calledPlace, start.shuffles);
    this.#end = this.#base;
  }

  get base(): number {
    return this.#base;
  }

  /** The smallest number whose place may still be called. */
  get firstNumber(): number {
    return firstNumber(this.#calledPlace, this.#shuffles);
  }

  get end(): number {
    return this.#end;
  }

  get calledPlace(): number {
    return this.#calledPlace;
  }

  get shuffles(): readonly LineShuffle[] {
    return this.#shuffles;
  }

  get liveCount(): number {
    return this.#liveCount;
  }

  get liveByBlock(): readonly number[] {
    return this.#counts;
  }

  /** Returns the number of visitors who were found to have left since the last call. */
  takeLeftCount(): number {
    const count = this.#leftCount;
    this.#leftCount = 0;
    return count;
  }

  /**
   * Takes words of the line, from a number on that is at most `end`.
   *
   * @param lostBefore words from 1, below this one, belong to visitors who are gone
   */
  read(from: number, words: Uint32Array, lostBefore: number): void {
    this.#grow(from + words.length);
    for (let i = Math.max(0, this.#base - from); i < words.length; i += 1) {
      const word = words[i] ?? 0;
      const number = from + i;
      const isLive = word !== 0 && word < calledBit && word >= lostBefore;
      if (isLive === (this.#isLive[number - this.#base] === 1)) continue;
      const place = placeOf(number, this.#shuffles);
      if (place < this.#calledPlace) continue;
      this.#isLive[number - this.#base] = isLive ? 1 : 0;
      this.#count(place, isLive ? 1 : -1);
      // A visitor who was let in out of order did not leave.
      if (!isLive && word < calledBit) this.#leftCount += 1;
    }
    this.#end = Math.max(this.#end, from + words.length);
  }

  /** Returns the number of the visitor at a place. Undefined: the visitor is gone. */
  presentAt(place: number): number | undefined {
    const number = numberAtPlace(place, this.#shuffles);
    return this.#isLive[number - this.#base] === 1 ? number : undefined;
  }

  /** Reports whether the word of the number at a place was read. */
  hasRead(place: number): boolean {
    return numberAtPlace(place, this.#shuffles) < this.#end;
  }

  /** Marks places below this one as called or skipped. */
  advance(calledPlace: number): void {
    for (let place = this.#calledPlace; place < calledPlace; place += 1) {
      const number = numberAtPlace(place, this.#shuffles);
      if (this.#isLive[number - this.#base] !== 1) continue;
      this.#isLive[number - this.#base] = 0;
      this.#count(place, -1);
    }
    this.#counts.splice(0, blockOf(calledPlace) - blockOf(this.#calledPlace));
    this.#calledPlace = calledPlace;
  }

  /** Forgets runs and numbers whose places were all called. */
  forgetCalled(): void {
    this.#shuffles = openShuffles(this.#shuffles, this.#calledPlace);
    const base = this.firstNumber;
    // Bytes are moved only when half of them are no longer needed.
    if (base - this.#base < this.#isLive.length / 2) return;
    this.#isLive.copyWithin(0, base - this.#base);
    this.#isLive.fill(0, Math.max(0, this.#isLive.length - (base - this.#base)));
    this.#base = base;
    this.#end = Math.max(this.#end, base);
  }

  /** Permutes places that were not called. It takes about 0.1 us for each number. */
  shuffle(run: LineShuffle): void {
    this.#shuffles = [...this.#shuffles, run];
    this.#counts = [];
    this.#liveCount = 0;
    for (let number = this.#base; number < this.#end; number += 1) {
      if (this.#isLive[number - this.#base] === 1) this.#count(placeOf(number, this.#shuffles), 1);
    }
  }

  /** Returns one bit for each place of the first blocks: whether its visitor is present. */
  front(): Uint8Array {
    const blocks = Math.min(this.#counts.length, (8 * frontBytesMax) / liveBlockSize);
    const bits = new Uint8Array((blocks * liveBlockSize) / 8);
    const from = blockOf(this.#calledPlace) * liveBlockSize;
    let left = this.#counts.slice(0, blocks).reduce((sum, count) => sum + count, 0);
    for (let i = this.#calledPlace - from; left > 0 && i < 8 * bits.length; i += 1) {
      if (this.presentAt(from + i) === undefined) continue;
      bits[i >> 3] = (bits[i >> 3] ?? 0) | (1 << (i & 7));
      left -= 1;
    }
    return bits;
  }

  #count(place: number, change: 1 | -1): void {
    const block = blockOf(place) - blockOf(this.#calledPlace);
    while (this.#counts.length <= block) this.#counts.push(0);
    this.#counts[block] = (this.#counts[block] ?? 0) + change;
    this.#liveCount += change;
  }

  #grow(end: number): void {
    if (end - this.#base <= this.#isLive.length) return;
    const larger = new Uint8Array(2 * (end - this.#base));
    larger.set(this.#isLive);
    this.#isLive = larger;
  }
}

function firstNumber(calledPlace: number, shuffles: readonly LineShuffle[]): number {
  return shuffles.reduce((least, { from }) => Math.min(least, from), calledPlace);
}

function blockOf(place: number): number {
  return Math.floor(place / liveBlockSize);
}
