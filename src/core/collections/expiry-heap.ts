/** What an `ExpiryHeap` holds. The place is the heap's own: nobody else writes it. */
export interface Expiring {
  readonly expiresMs: number;
  /** Where it is in the heap; undefined while it is in none. */
  heapPlace: number | undefined;
}

/**
 * Items by the time at which they expire, the next one first. Putting one in and taking any one out
 * takes O(log n), and looking at the first one nothing.
 */
export class ExpiryHeap<T extends Expiring> {
  readonly #items: T[] = [];

  /** The one that expires next. */
  get first(): T | undefined {
    return this.#items[0];
  }

  /** Puts in an item that is in no heap. */
  push(item: T): void {
    this.#items.push(item);
    this.#rise(item, this.#items.length - 1);
  }

  /** Takes out an item of this heap. */
  remove(item: T): void {
    const place = item.heapPlace;
    const last = this.#items.pop();
    item.heapPlace = undefined;
    if (place === undefined || last === undefined || last === item) return;
    this.#sink(last, place);
    this.#rise(last, last.heapPlace ?? place);
  }

  #put(item: T, place: number): void {
    this.#items[place] = item;
    item.heapPlace = place;
  }

  #rise(item: T, from: number): void {
    let place = from;
    while (place > 0) {
      const parentPlace = (place - 1) >> 1;
      const parent = this.#items[parentPlace];
      if (parent === undefined || parent.expiresMs <= item.expiresMs) break;
      this.#put(parent, place);
      place = parentPlace;
    }
    this.#put(item, place);
  }

  #sink(item: T, from: number): void {
    let place = from;
    for (;;) {
      const left = this.#items[2 * place + 1];
      if (left === undefined) break;
      const right = this.#items[2 * place + 2];
      const child = right !== undefined && right.expiresMs < left.expiresMs ? right : left;
      if (child.expiresMs >= item.expiresMs) break;
      const childPlace = child === left ? 2 * place + 1 : 2 * place + 2;
      this.#put(child, place);
      place = childPlace;
    }
    this.#put(item, place);
  }
}
