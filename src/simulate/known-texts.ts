/** Two texts that name something together. */
export interface TextPair {
  /** Of these there should be fewer. */
  readonly first: string;
  readonly last: string;
}

/**
 * What is known by two texts, bounded: once there is no room it begins anew. Two look-ups cost less
 * than to make one text of both, and the second one alone where the first is always the same.
 */
export class KnownTexts<Known> {
  readonly #sizeMax: number;
  readonly #byFirst = new Map<string, Map<string, Known>>();
  #size = 0;

  /** @param sizeMax the most that is known, from 1 */
  constructor(sizeMax: number) {
    this.#sizeMax = sizeMax;
  }

  /** How much is known now. */
  get size(): number {
    return this.#size;
  }

  get({ first, last }: TextPair): Known | undefined {
    return this.#byFirst.get(first)?.get(last);
  }

  /** Keeps what was not known. */
  add({ first, last }: TextPair, known: Known): void {
    if (this.#size >= this.#sizeMax) {
      this.#byFirst.clear();
      this.#size = 0;
    }
    const byLast = this.#byFirst.get(first) ?? new Map<string, Known>();
    this.#byFirst.set(first, byLast);
    byLast.set(last, known);
    this.#size += 1;
  }
}
