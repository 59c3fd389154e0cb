import type { Cancel, Clock } from "../../core/base/clock.js";
import { Tally } from "../../core/collections/tally.js";

/**
 * Maximum bytes of incomplete requests of one peer, by its identity. A request above is refused.
 * Requests of Envoy come whole in one frame, bodies in many.
 */
export const peerPartialBytesMax = 16_777_216;

/** Maximum for all peers of a server together. */
export const serverPartialBytesMax = 67_108_864;

/** Maximum time from the first to the last byte of a request, in milliseconds. */
export const partialMsMax = 10_000;

/**
 * Calls back when a request that begins now has run out of time. Bytes that this process reads late
 * are not held against the caller: all that is there in the turn in which the time ends counts.
 */
export function schedulePartialEnd(clock: Clock, callback: () => void): Cancel {
  let cancel = clock.schedule(partialMsMax, () => {
    cancel = clock.scheduleTurn(callback);
  });
  return () => cancel();
}

/** Bytes of incomplete requests, on all connections of a server. */
export class PartialBytes {
  readonly #byPeer = new Tally<string>();
  #byteCount = 0;

  /** Reports whether there is room for this many more bytes, of this peer and of all. */
  hasRoom(peer: string, byteCount: number): boolean {
    return (
      this.#byPeer.get(peer) + byteCount <= peerPartialBytesMax &&
      this.#byteCount + byteCount <= serverPartialBytesMax
    );
  }

  /** Counts bytes of incomplete requests as they come, and below 0 as they go. */
  count(peer: string, byteCount: number): void {
    this.#byteCount += byteCount;
    this.#byPeer.add(peer, byteCount);
  }
}
