/** An item with a time. */
interface Timed {
  readonly timeUs: number;
}

/**
 * Sorts items that are nearly in order: a log is written as requests end, and read as they started.
 * It holds back `heldMax` items. An item earlier than all of these comes out at once, late.
 */
export class InOrder<T extends Timed> {
  readonly #heldMax: number;
  /** A heap, the earliest first. Times are separate, so that comparisons read nothing else. */
  readonly #timesUs: Float64Array;
  readonly #items: T[] = [];
  #lastUs = Number.NEGATIVE_INFINITY;
  #lateCount = 0;

  /** @param heldMax number of items held back, from 1 */
  constructor(heldMax: number) {
    this.#heldMax = heldMax;
    this.#timesUs = new Float64Array(heldMax);
  }

  /** Number of items that came out after a later one. */
  get lateCount(): number {
    return this.#lateCount;
  }

  /** Takes an item. Returns the earliest held one once `heldMax` are held. */
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

  /** Returns all held items in order, and empties the buffer. */
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

  /** Moves an item up from a free place to its position. */
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

  /** Moves an item down from a free place to its position. */
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
