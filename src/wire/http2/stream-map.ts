/** What a `StreamMap` holds. */
interface Numbered {
  /** Odd, from 1 to 2^31 - 1. */
  readonly id: number;
}

/** Places of a new map: a connection that has few streams costs little. A power of two. */
const placesMin = 16;

/**
 * The open streams of a connection by their numbers, in one array that is kept.
 *
 * Not a `Map`: that makes itself new after so many deletions, and each table that it leaves behind
 * holds the next one and the streams of that moment. Once one of them is old, the collector keeps
 * all that follow until it looks at everything: 3 of 4 MB survived each of its rounds, and it took
 * two fifths of the CPU of an ext_proc exchange and pauses of 7 ms.
 *
 * Places are found by number, then by going on to the next free one. Numbers come in order, so
 * streams that end soon stand side by side; a peer that chooses its numbers so that they collide
 * makes a look-up go past all of its open streams, of which there are `streamCountMax`.
 */
export class StreamMap<T extends Numbered> {
  #places: (T | undefined)[] = emptyPlaces(placesMin);
  #size = 0;

  /** How many there are. */
  get size(): number {
    return this.#size;
  }

  get(id: number): T | undefined {
    return this.#places[this.#placeOf(id)];
  }

  /** Adds a stream whose number is none of the map's. */
  add(stream: T): void {
    // At most half of the places are taken, so that a free one is near.
    if (this.#size * 2 >= this.#places.length) this.#grow();
    this.#places[this.#placeOf(stream.id)] = stream;
    this.#size += 1;
  }

  /** Answers whether it was there. */
  delete(id: number): boolean {
    const places = this.#places;
    const mask = places.length - 1;
    let free = this.#placeOf(id);
    if (places[free] === undefined) return false;
    this.#size -= 1;
    // What has gone on past the place that is free now moves up to it.
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

  /** All of them in the order of their numbers, as they are now. */
  inOrder(): readonly T[] {
    const streams = this.#places.filter((stream) => stream !== undefined);
    return streams.sort((one, other) => one.id - other.id);
  }

  clear(): void {
    this.#places = emptyPlaces(placesMin);
    this.#size = 0;
  }

  /** Where a stream stands, or would. */
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

/** Clients' streams have odd numbers: the lowest bit says nothing. */
function homeOf(id: number, mask: number): number {
  return (id >>> 1) & mask;
}

function emptyPlaces<T>(count: number): (T | undefined)[] {
  return new Array<T | undefined>(count).fill(undefined);
}
