import type { Cancel, Clock } from "../../core/base/clock.js";
import { Tally } from "../../core/collections/tally.js";

/**
 * The most bytes of requests that one peer, by its identity, may have begun and not finished;
 * a request above is refused. Requests of Envoy come whole in one frame, bodies in many.
 */
export const peerPartialBytesMax = 16_777_216;

/** The same for all peers of a server together. */
export const serverPartialBytesMax = 67_108_864;

/** How long a request may take from its first byte to its last one, in milliseconds. */
export const partialMsMax = 10_000;

/**
 * Calls back when a request that begins now has had its time. What this process was late to read is
 * not held against the caller: all that lies there in the turn in which the time ends counts.
 */
export function schedulePartialEnd(clock: Clock, callback: () => void): Cancel {
  let cancel = clock.schedule(partialMsMax, () => {
    cancel = clock.scheduleTurn(callback);
  });
  return () => cancel();
}

/** Bytes of requests that have begun and not ended, on all connections of a server. */
export class PartialBytes {
  readonly #byPeer = new Tally<string>();
  #byteCount = 0;

  /** Whether there is room for so many bytes more, of this peer and of all. */
  hasRoom(peer: string, byteCount: number): boolean {
    return (
      this.#byPeer.get(peer) + byteCount <= peerPartialBytesMax &&
      this.#byteCount + byteCount <= serverPartialBytesMax
    );
  }

  /** Counts such bytes as they come, and below 0 as they go. */
  count(peer: string, byteCount: number): void {
    this.#byteCount += byteCount;
    this.#byPeer.add(peer, byteCount);
  }
}
