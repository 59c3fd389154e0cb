import { needStepCount, stepOfNeed } from "./number-scales.js";

/** Windows in which the hits of callers are counted, in microseconds. */
export const windowLengthsUs = [1_000_000, 60_000_000, 3_600_000_000] as const;

/** Requests of one caller on one day. */
export interface CallerDay {
  readonly key: string;
  readonly hits: number;
  /** Hits in its busiest second, minute and hour. */
  readonly busiest: readonly number[];
  /** By rate: the highest level that its bucket would reach without a limit. */
  readonly levels: Float32Array;
}

/** Numbers in a row: caller, day, hits, and hits in the busiest windows. */
const columnCount = 3 + windowLengthsUs.length;

/**
 * Requests of callers, with one row for each caller and day. Rows are stored as columns of numbers
 * because there are many. `needs` holds, by rate, the bursts that let all requests of that day
 * pass, as steps of `needOfStep`.
 */
export class CallerDays {
  readonly rateCount: number;
  /** Callers with so many requests that they are always followed. */
  readonly heavy = new Set<string>();
  /** Part of the other callers that is followed: 1, a half, a quarter and so on. */
  sampledRatio = 1;
  readonly #callers = new Map<string, number>();
  #columns = new Float64Array(columnCount * 64);
  #needs: Uint8Array;
  #rowCount = 0;

  constructor(rateCount: number) {
    this.rateCount = rateCount;
    this.#needs = new Uint8Array(rateCount * 64);
  }

  get rowCount(): number {
    return this.#rowCount;
  }

  /** Keys of the callers, indexed by their number in the rows. */
  get callers(): readonly string[] {
    return [...this.#callers.keys()];
  }

  /** @param day days since 1970 */
  add(day: number, { key, hits, busiest, levels }: CallerDay): void {
    this.#grow();
    this.#columns.set([this.#numberOf(key), day, hits, ...busiest], this.#rowCount * columnCount);
    for (const [rate, level] of levels.entries()) {
      this.#needs[this.#rowCount * this.rateCount + rate] = stepOfNeed(level);
    }
    this.#rowCount += 1;
  }

  /**
   * Returns how many callers each caller represents, by its number: 1 for callers that are always
   * followed, and the inverse of the sampled part for the others.
   */
  weights(): Float64Array {
    return Float64Array.from(this.callers, (key) => {
      return this.heavy.has(key) ? 1 : 1 / this.sampledRatio;
    });
  }

  /** Returns the number of the caller of a row. */
  callerAt(row: number): number {
    return this.#columns[row * columnCount] ?? 0;
  }

  /** Returns the day of a row, in days since 1970. */
  dayAt(row: number): number {
    return this.#columns[row * columnCount + 1] ?? 0;
  }

  hitsAt(row: number): number {
    return this.#columns[row * columnCount + 2] ?? 0;
  }

  /** @param window an index of `windowLengthsUs` */
  busiestAt(row: number, window: number): number {
    return this.#columns[row * columnCount + 3 + window] ?? 0;
  }

  needStepAt(row: number, rate: number): number {
    return this.#needs[row * this.rateCount + rate] ?? needStepCount - 1;
  }

  /** Drops the rows of all callers except the kept ones. */
  keepOnly(isKept: (key: string) => boolean): void {
    const { callers, rateCount } = this;
    this.#callers.clear();
    let count = 0;
    for (let row = 0; row < this.#rowCount; row += 1) {
      const key = callers[this.callerAt(row)] ?? "";
      if (!isKept(key)) continue;
      this.#columns.copyWithin(count * columnCount, row * columnCount, (row + 1) * columnCount);
      this.#columns[count * columnCount] = this.#numberOf(key);
      this.#needs.copyWithin(count * rateCount, row * rateCount, (row + 1) * rateCount);
      count += 1;
    }
    this.#rowCount = count;
  }

  #numberOf(key: string): number {
    const number = this.#callers.get(key) ?? this.#callers.size;
    this.#callers.set(key, number);
    return number;
  }

  #grow(): void {
    if ((this.#rowCount + 1) * columnCount <= this.#columns.length) return;
    const columns = new Float64Array(2 * this.#columns.length);
    columns.set(this.#columns);
    this.#columns = columns;
    const needs = new Uint8Array(2 * this.#needs.length);
    needs.set(this.#needs);
    this.#needs = needs;
  }
}
