/** Numbers of consecutive steps of time. */
export interface SeriesPart<C extends string> {
  /** When its first step ends. Undefined: there is none. */
  readonly startMs: number | undefined;
  /** Numbers by column, the oldest first, all of the same length. */
  readonly columns: Readonly<Record<C, number[]>>;
}

/** How far a clock may go back, in steps, before the series restarts. */
export const stepsBackMax = 60;

/**
 * The newest steps of some columns of numbers, in 4 bytes per number. Whole numbers are exact up to
 * 16,777,216.
 */
export class StepSeries<C extends string> {
  readonly #names: readonly C[];
  readonly #stepMs: number;
  readonly #stepsMax: number;
  readonly #cells: Float32Array;
  /** The first and the last step, counted since 1970. Undefined: there is none yet. */
  #first: number | undefined;
  #last = Number.NEGATIVE_INFINITY;

  constructor(names: readonly C[], bounds: { readonly stepMs: number; readonly stepsMax: number }) {
    this.#names = names;
    this.#stepMs = bounds.stepMs;
    this.#stepsMax = bounds.stepsMax;
    this.#cells = new Float32Array(names.length * bounds.stepsMax);
  }

  /** The memory in use, in bytes. */
  get byteCount(): number {
    return this.#cells.byteLength;
  }

  /**
   * Adds the numbers of a step. Steps that were left out before it have zeros. A step that is not
   * the newest is ignored, unless a clock went back by `stepsBackMax`: then the series restarts.
   *
   * @param endMs when it ends: a whole number of steps since 1970
   */
  put(endMs: number, read: (name: C) => number): void {
    const step = Math.round(endMs / this.#stepMs);
    if (step <= this.#last - stepsBackMax) this.#first = undefined;
    else if (step <= this.#last) return;
    const oldest = step - this.#stepsMax + 1;
    const next = this.#first === undefined ? step : Math.max(oldest, this.#last + 1);
    for (let between = next; between < step; between += 1) this.#write(between, () => 0);
    this.#write(step, read);
    this.#first = Math.max(oldest, this.#first ?? step);
    this.#last = step;
  }

  /** Returns the steps that end after a time, at most the newest `countMax` of them. */
  read(sinceMs: number, countMax = this.#stepsMax): SeriesPart<C> {
    const columns: Partial<Record<C, number[]>> = {};
    const begin = Math.max(
      this.#first ?? 0,
      Math.floor(sinceMs / this.#stepMs) + 1,
      this.#last - countMax + 1,
    );
    const count = this.#first === undefined ? 0 : Math.max(0, this.#last - begin + 1);
    for (const [index, name] of this.#names.entries()) {
      columns[name] = Array.from({ length: count }, (_, i) => this.#read(begin + i, index));
    }
    const startMs = count === 0 ? undefined : begin * this.#stepMs;
    return { startMs, columns: columns as Record<C, number[]> };
  }

  #write(step: number, read: (name: C) => number): void {
    const row = (step % this.#stepsMax) * this.#names.length;
    for (const [index, name] of this.#names.entries()) this.#cells[row + index] = read(name);
  }

  #read(step: number, index: number): number {
    return this.#cells[(step % this.#stepsMax) * this.#names.length + index] ?? 0;
  }
}
