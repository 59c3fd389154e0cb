/** What has a time. */
interface Timed {
  readonly timeUs: number;
}

/**
 * Brings what comes nearly in order into order: a log is written as requests end, and read as they
 * began. Holds so many back; one that comes later than all of those comes out at once, late.
 */
export class InOrder<T extends Timed> {
  readonly #heldMax: number;
  /** A heap, the earliest first: times by themselves, so that comparing looks at nothing else. */
  readonly #timesUs: Float64Array;
  readonly #items: T[] = [];
  #lastUs = Number.NEGATIVE_INFINITY;
  #lateCount = 0;

  /** @param heldMax how many are held back, from 1 */
  constructor(heldMax: number) {
    this.#heldMax = heldMax;
    this.#timesUs = new Float64Array(heldMax);
  }

  /** How many came out after one that was later than they. */
  get lateCount(): number {
    return this.#lateCount;
  }

  /** Takes one; answers the earliest that is held, once enough are. */
  push(item: T): T | undefined {
    const count = this.#items.length;
    if (count < this.#heldMax) {
      this.#items.push(item);
      this.#rise(item, count);
      return undefined;
    }
    const first = this.#items[0];
    if (first === undefined || item.timeUs <= this.#timeAt(0)) return this.#out(item);
    this.#sink(item, 0);
    return this.#out(first);
  }

  /** All that are held, in order; none are afterwards. */
  *drain(): Generator<T> {
    for (;;) {
      const first = this.#items[0];
      const last = this.#items.pop();
      if (first === undefined || last === undefined) return;
      if (this.#items.length > 0) this.#sink(last, 0);
      yield this.#out(first);
    }
  }

  #out(item: T): T {
    if (item.timeUs < this.#lastUs) this.#lateCount += 1;
    else this.#lastUs = item.timeUs;
    return item;
  }

  #timeAt(place: number): number {
    return this.#timesUs[place] ?? 0;
  }

  #put(item: T, timeUs: number, place: number): void {
    this.#items[place] = item;
    this.#timesUs[place] = timeUs;
  }

  /** Puts one where it belongs, at a free place or above it. */
  #rise(item: T, from: number): void {
    const { timeUs } = item;
    let place = from;
    while (place > 0) {
      const parentPlace = (place - 1) >> 1;
      const parent = this.#items[parentPlace];
      const parentUs = this.#timeAt(parentPlace);
      if (parent === undefined || parentUs <= timeUs) break;
      this.#put(parent, parentUs, place);
      place = parentPlace;
    }
    this.#put(item, timeUs, place);
  }

  /** Puts one where it belongs, at a free place or below it. */
  #sink(item: T, from: number): void {
    const { timeUs } = item;
    const count = this.#items.length;
    let place = from;
    for (let child = 2 * from + 1; child < count; child = 2 * place + 1) {
      if (child + 1 < count && this.#timeAt(child + 1) < this.#timeAt(child)) child += 1;
      const moved = this.#items[child];
      const movedUs = this.#timeAt(child);
      if (moved === undefined || movedUs >= timeUs) break;
      this.#put(moved, movedUs, place);
      place = child;
    }
    this.#put(item, timeUs, place);
  }
}
