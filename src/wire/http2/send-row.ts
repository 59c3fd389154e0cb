/** A member of a row. It holds the row's own marks. */
export interface RowMember<T> {
  isScheduled: boolean;
  nextInRow: T | undefined;
  previousInRow: T | undefined;
  /** Whether it has something that may be sent. */
  readonly isReady: boolean;
}

/**
 * The streams of a connection whose bodies wait for it, in the order of their turns: each sends a
 * frame, and moves to the end of the row if more is left. A stream that waits for its own window
 * leaves the row until the window opens.
 *
 * A linked list through the streams themselves: it takes no memory of its own, and a stream that is
 * reset leaves it at once. Otherwise, resets would fill it while the connection's window is shut.
 */
export class SendRow<T extends RowMember<T>> {
  #first: T | undefined;
  #last: T | undefined;
  #count = 0;

  /** Number of streams in the row. */
  get count(): number {
    return this.#count;
  }

  /** Appends a stream, if it has something that may be sent and is not in the row. */
  add(stream: T): void {
    if (stream.isScheduled || !stream.isReady) return;
    stream.isScheduled = true;
    stream.previousInRow = this.#last;
    if (this.#last === undefined) this.#first = stream;
    else this.#last.nextInRow = stream;
    this.#last = stream;
    this.#count += 1;
  }

  /** Removes and returns the first one. Undefined if there is none. */
  take(): T | undefined {
    const first = this.#first;
    if (first !== undefined) this.remove(first);
    return first;
  }

  /** Removes a stream, wherever it is, if it is in the row. */
  remove(stream: T): void {
    if (!stream.isScheduled) return;
    const { nextInRow, previousInRow } = stream;
    if (previousInRow === undefined) this.#first = nextInRow;
    else previousInRow.nextInRow = nextInRow;
    if (nextInRow === undefined) this.#last = previousInRow;
    else nextInRow.previousInRow = previousInRow;
    stream.nextInRow = undefined;
    stream.previousInRow = undefined;
    stream.isScheduled = false;
    this.#count -= 1;
  }
}
