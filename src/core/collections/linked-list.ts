/** A value's place in a `LinkedList`. Its neighbours are the list's own, to be written by it. */
export interface ListNode<T> {
  readonly value: T;
  older: ListNode<T> | undefined;
  newer: ListNode<T> | undefined;
}

/** Values in the order in which they came, of which any one is taken out in constant time. */
export class LinkedList<T> {
  #oldest: ListNode<T> | undefined;
  #newest: ListNode<T> | undefined;
  #count = 0;

  get oldest(): ListNode<T> | undefined {
    return this.#oldest;
  }

  get newest(): ListNode<T> | undefined {
    return this.#newest;
  }

  get count(): number {
    return this.#count;
  }

  /** Adds a value as the newest one. */
  push(value: T): ListNode<T> {
    const node: ListNode<T> = { value, older: this.#newest, newer: undefined };
    if (this.#newest === undefined) this.#oldest = node;
    else this.#newest.newer = node;
    this.#newest = node;
    this.#count += 1;
    return node;
  }

  /** Takes out a node of this list that is still in it. */
  remove(node: ListNode<T>): void {
    if (node.older === undefined) this.#oldest = node.newer;
    else node.older.newer = node.newer;
    if (node.newer === undefined) this.#newest = node.older;
    else node.newer.older = node.older;
    this.#count -= 1;
  }
}
