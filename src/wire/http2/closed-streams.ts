import { endedStreamsKeptMax, resetStreamsKeptMax } from "../base/http2-limits.js";

/** How a stream ended, as far as it is still known. */
type ClosedStream = "ended" | "reset" | "unknown";

/**
 * Remembers the streams that ended last, in two rings: those that we have reset, whose frames may
 * still be under way, and the others, on which nothing may come any more.
 *
 * Source: RFC 9113, section 5.1, "closed".
 */
export class ClosedStreams {
  readonly #ended = new Int32Array(endedStreamsKeptMax);
  readonly #reset = new Int32Array(resetStreamsKeptMax);
  #endedNext = 0;
  #resetNext = 0;

  /** The peer has ended or reset it. */
  addEnded(id: number): void {
    this.#ended[this.#endedNext] = id;
    this.#endedNext = (this.#endedNext + 1) % endedStreamsKeptMax;
  }

  /** We have reset it, before the peer had ended. */
  addReset(id: number): void {
    this.#reset[this.#resetNext] = id;
    this.#resetNext = (this.#resetNext + 1) % resetStreamsKeptMax;
  }

  /** Looks through both rings: for what comes on a stream that is not open, which is rare. */
  find(id: number): ClosedStream {
    if (this.#reset.includes(id)) return "reset";
    return this.#ended.includes(id) ? "ended" : "unknown";
  }
}
