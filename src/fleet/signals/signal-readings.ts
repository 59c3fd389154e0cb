/** The response of a source: one reading, or one per key. */
export type SignalReadings =
  | { readonly kind: "whole"; readonly reading: number }
  | { readonly kind: "byKey"; readonly readings: ReadonlyMap<string, number> };

/** A source of readings. */
export interface SignalReader {
  /**
   * Reads the source once.
   *
   * @param deadlineMs monotonic time after which nothing waits for the response
   * @throws ServiceError a SIGNAL_ or STORE_ code; its text contains nothing of the response
   */
  read(deadlineMs: number): Promise<SignalReadings>;
}

/** Maximum length of a key, in characters. Longer keys are skipped. */
export const readingKeyCharsMax = 256;

/** Sums up readings: over all series, or per key. */
export class ReadingSum {
  readonly #byKey: Map<string, number> | undefined;
  readonly #keysMax: number;
  readonly #ownText: (text: string) => string;
  #sum: number | undefined;

  /**
   * @param keysMax maximum number of keys; undefined: one sum over all series
   * @param copy makes a key to keep; by default a copy, because most keys are slices of a response
   *   and would keep all of it in memory
   */
  constructor(keysMax: number | undefined, copy: (text: string) => string = ownText) {
    this.#ownText = copy;
    this.#byKey = keysMax === undefined ? undefined : new Map();
    this.#keysMax = keysMax ?? 0;
  }

  /** Skips values that are not finite, invalid keys, and keys beyond the maximum. */
  add(value: number, key: string | undefined): void {
    if (!Number.isFinite(value)) return;
    if (this.#byKey === undefined) {
      this.#sum = (this.#sum ?? 0) + value;
    } else if (key !== undefined && key !== "" && key.length <= readingKeyCharsMax) {
      const before = this.#byKey.get(key);
      if (before !== undefined) this.#byKey.set(key, before + value);
      else if (this.#byKey.size < this.#keysMax) this.#byKey.set(this.#ownText(key), value);
    }
  }

  /** Undefined if nothing was added. */
  get readings(): SignalReadings | undefined {
    if (this.#byKey !== undefined) {
      return this.#byKey.size === 0 ? undefined : { kind: "byKey", readings: this.#byKey };
    }
    return this.#sum === undefined ? undefined : { kind: "whole", reading: this.#sum };
  }
}

/** A copy of the text with its own memory. */
function ownText(text: string): string {
  // Takes a tenth of the time of split and join. Two bytes per character if one is not enough.
  const copy = Buffer.from(text, "latin1").toString("latin1");
  return copy === text ? copy : Buffer.from(text, "utf16le").toString("utf16le");
}
