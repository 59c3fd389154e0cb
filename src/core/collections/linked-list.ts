/** A node of a `LinkedList`. Only the list writes its neighbors. */
export interface ListNode<T> {
  readonly value: T;
  older: ListNode<T> | undefined;
  newer: ListNode<T> | undefined;
}

/** A list of values in insertion order, with removal in constant time. */
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

  /** Appends a value. */
  push(value: T): ListNode<T> {
    const node: ListNode<T> = { value, older: this.#newest, newer: undefined };
    if (this.#newest === undefined) this.#oldest = node;
    else this.#newest.newer = node;
    this.#newest = node;
    this.#count += 1;
    return node;
  }

  /** Removes a node that is in this list. */
  remove(node: ListNode<T>): void {
    if (node.older === undefined) this.#oldest = node.newer;
    else node.older.newer = node.newer;
    if (node.newer === undefined) this.#newest = node.older;
    else node.newer.older = node.older;
    this.#count -= 1;
  }
}
