/** An entry of a `StreamMap`. */
interface Numbered {
  /** Odd, from 1 to 2^31 - 1. */
  readonly id: number;
}

/** Places of a new map: a connection with few streams costs little. A power of two. */
const placesMin = 16;

/**
 * The open streams of a connection by their numbers, in one array that is kept.
 *
 * Not a `Map`, because that is rebuilt after many deletions, and each table that it leaves behind
 * references the next one and the streams of that moment. Once one of them is old, the garbage
 * collector keeps all later ones until a full collection: 3 of 4 MB survived each of its rounds,
 * which took two fifths of the CPU of an ext_proc exchange and caused pauses of 7 ms.
 *
 * Places are found by number, then by moving on to the next free one. Numbers come in order, so
 * streams that end soon are side by side. A peer that chooses colliding numbers makes a look-up
 * pass all of its open streams, at most `streamCountMax`.
 */
export class StreamMap<T extends Numbered> {
  #places: (T | undefined)[] = emptyPlaces(placesMin);
  #size = 0;

  /** Number of streams. */
  get size(): number {
    return this.#size;
  }

  get(id: number): T | undefined {
    return this.#places[this.#placeOf(id)];
  }

  /** Adds a stream whose number is not in the map. */
  add(stream: T): void {
    // At most half of the places are taken, so that a free one is near.
    if (this.#size * 2 >= this.#places.length) this.#grow();
    this.#places[this.#placeOf(stream.id)] = stream;
    this.#size += 1;
  }

  /** Removes a stream. Returns whether it was there. */
  delete(id: number): boolean {
    const places = this.#places;
    const mask = places.length - 1;
    let free = this.#placeOf(id);
    if (places[free] === undefined) return false;
    this.#size -= 1;
    // Streams that had moved on past the place that is free now move back to it.
    for (let at = (free + 1) & mask; ; at = (at + 1) & mask) {
      const stream = places[at];
      if (stream === undefined) break;
      const home = homeOf(stream.id, mask);
      const isBetween = ((at - home) & mask) < ((at - free) & mask);
      if (isBetween) continue;
      places[free] = stream;
      free = at;
    }
    places[free] = undefined;
    return true;
  }

  /** Returns all of them in the order of their numbers, as they are now. */
  inOrder(): readonly T[] {
    const streams = this.#places.filter((stream) => stream !== undefined);
    return streams.sort((one, other) => one.id - other.id);
  }

  clear(): void {
    this.#places = emptyPlaces(placesMin);
    this.#size = 0;
  }

  /** Returns where a stream is, or would be. */
  #placeOf(id: number): number {
    const places = this.#places;
    const mask = places.length - 1;
    let at = homeOf(id, mask);
    for (;;) {
      const stream = places[at];
      if (stream === undefined || stream.id === id) return at;
      at = (at + 1) & mask;
    }
  }

  #grow(): void {
    const streams = this.#places;
    this.#places = emptyPlaces(streams.length * 2);
    for (const stream of streams) {
      if (stream !== undefined) this.#places[this.#placeOf(stream.id)] = stream;
    }
  }
}

/** Clients' streams have odd numbers, so the lowest bit means nothing. */
function homeOf(id: number, mask: number): number {
  return (id >>> 1) & mask;
}

function emptyPlaces<T>(count: number): (T | undefined)[] {
  return new Array<T | undefined>(count).fill(undefined);
}
