import type { Http2Stream } from "./http2-stream.js";

/**
 * The streams of a connection whose bodies wait for it, in the order of their turns: each sends a
 * frame, and goes to the end of the row when more is left. A stream that waits for its own window
 * leaves the row, until the window opens.
 */
export class SendRow {
  #streams: Http2Stream[] = [];
  /** Those before it have had their turn. */
  #next = 0;

  get isEmpty(): boolean {
    return this.#next === this.#streams.length;
  }

  /** Puts a stream at the end, if it has something that may be sent and does not stand here. */
  add(stream: Http2Stream): void {
    if (stream.isScheduled || stream.isGone || !stream.isReady) return;
    stream.isScheduled = true;
    this.#streams.push(stream);
  }

  /** Takes out the first one that is not gone; undefined when there is none. */
  take(): Http2Stream | undefined {
    while (!this.isEmpty) {
      const stream = this.#streams[this.#next];
      this.#next += 1;
      if (stream === undefined) break;
      stream.isScheduled = false;
      if (!stream.isGone) return stream;
    }
    this.clear();
    return undefined;
  }

  /** Forgets who had a turn, now and then: each place moves once for each that was added. */
  compact(): void {
    if (this.#next < this.#streams.length / 2) return;
    this.#streams = this.#streams.slice(this.#next);
    this.#next = 0;
  }

  clear(): void {
    this.#streams = [];
    this.#next = 0;
  }
}
