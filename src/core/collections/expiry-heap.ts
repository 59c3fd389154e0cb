/** An item of an `ExpiryHeap`. Only the heap writes its position. */
export interface Expiring {
  readonly expiresMs: number;
  /** Its index in the heap. Undefined if it is in none. */
  heapPlace: number | undefined;
}

/**
 * A priority queue of items by expiry time, earliest first. Adding and removing any item takes
 * O(log n), reading the first one O(1).
 */
export class ExpiryHeap<T extends Expiring> {
  readonly #items: T[] = [];

  /** The item that expires next. */
  get first(): T | undefined {
    return this.#items[0];
  }

  /** Adds an item that is in no heap. */
  push(item: T): void {
    this.#items.push(item);
    this.#rise(item, this.#items.length - 1);
  }

  /** Removes an item of this heap. */
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
