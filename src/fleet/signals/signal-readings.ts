/** What a source answered: one reading, or one for each key that it knows. */
export type SignalReadings =
  | { readonly kind: "whole"; readonly reading: number }
  | { readonly kind: "byKey"; readonly readings: ReadonlyMap<string, number> };

/** A source of readings. A reader of Kafka's brokers would be one more of these. */
export interface SignalReader {
  /**
   * Asks once.
   *
   * @param deadlineMs monotonic time after which nobody waits for the answer any more
   * @throws ServiceError a SIGNAL_ or STORE_ code; its text holds nothing of the answer
   */
  read(deadlineMs: number): Promise<SignalReadings>;
}

/** The longest key of a reading, in characters; longer ones are left aside. */
export const readingKeyCharsMax = 256;

/** Adds readings up: over all, or over the series of each key. */
export class ReadingSum {
  readonly #byKey: Map<string, number> | undefined;
  readonly #keysMax: number;
  readonly #ownText: (text: string) => string;
  #sum: number | undefined;

  /**
   * @param keysMax the most keys; undefined: one sum over all
   * @param copy makes a key to be kept; default: a copy, since most are a part of an answer, and
   *   would keep all of that in memory
   */
  constructor(keysMax: number | undefined, copy: (text: string) => string = ownText) {
    this.#ownText = copy;
    this.#byKey = keysMax === undefined ? undefined : new Map();
    this.#keysMax = keysMax ?? 0;
  }

  /** Leaves aside what is no finite number, a key that is none, and keys beyond the bound. */
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

  /** Undefined where nothing was added. */
  get readings(): SignalReadings | undefined {
    if (this.#byKey !== undefined) {
      return this.#byKey.size === 0 ? undefined : { kind: "byKey", readings: this.#byKey };
    }
    return this.#sum === undefined ? undefined : { kind: "whole", reading: this.#sum };
  }
}

/** The same text in memory of its own. */
function ownText(text: string): string {
  // A tenth of the time of split and join. Two bytes a character where one cannot hold it.
  const copy = Buffer.from(text, "latin1").toString("latin1");
  return copy === text ? copy : Buffer.from(text, "utf16le").toString("utf16le");
}
