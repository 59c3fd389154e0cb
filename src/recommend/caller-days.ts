import { needStepCount, stepOfNeed } from "./number-scales.js";

/** Windows in which the hits of callers are counted, in microseconds. */
export const windowLengthsUs = [1_000_000, 60_000_000, 3_600_000_000] as const;

/** What one caller did on one day. */
export interface CallerDay {
  readonly key: string;
  readonly hits: number;
  /** In its busiest second, minute and hour. */
  readonly busiest: readonly number[];
  /** By rate: the largest level of its bucket, were there no limit. */
  readonly levels: Float32Array;
}

/** Numbers of a row: caller, day, hits, and hits in the busiest windows. */
const columnCount = 3 + windowLengthsUs.length;

/**
 * What callers did, a row for each caller and day: in columns of numbers, since there are many.
 * `needs` are the bursts that let all requests of that day pass, by rate, as steps of
 * `needOfStep`.
 */
export class CallerDays {
  readonly rateCount: number;
  /** Callers with so many requests that they are followed in any case. */
  readonly heavy = new Set<string>();
  /** Which part of the others is followed: 1, a half, a quarter and so on. */
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

  /** Keys of the callers, by the number that rows have for them. */
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
   * Of how many callers each one stands for, by its number: 1 for those that are followed in any
   * case, and as many for a sampled one as were sampled from.
   */
  weights(): Float64Array {
    return Float64Array.from(this.callers, (key) => {
      return this.heavy.has(key) ? 1 : 1 / this.sampledRatio;
    });
  }

  /** The number of the caller of a row. */
  callerAt(row: number): number {
    return this.#columns[row * columnCount] ?? 0;
  }

  /** Days since 1970. */
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

  /** Drops the rows of all other callers. */
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
