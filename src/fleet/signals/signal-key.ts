import { assertNever, ServiceError } from "../../core/base/errors.js";
import { type NumberStore, numberFieldsMax } from "../../store/coordination/number-store.js";
import { parseReading, someOf } from "./signal-answers.js";
import { ReadingSum, type SignalReader, type SignalReadings } from "./signal-readings.js";

interface KeySignalReaderParts {
  readonly store: NumberStore;
  readonly key: string;
  /** Maximum number of keys. Undefined: only a single number is valid. */
  readonly keysMax: number | undefined;
}

/** Reads a key of the store: a number as text, the length of a list, or a hash of numbers. */
export class KeySignalReader implements SignalReader {
  readonly #parts: KeySignalReaderParts;

  constructor(parts: KeySignalReaderParts) {
    this.#parts = parts;
  }

  async read(deadlineMs: number): Promise<SignalReadings> {
    const { store, key, keysMax = 0 } = this.#parts;
    const fieldsMax = Math.min(keysMax, numberFieldsMax);
    const found = await store.read({ key, fieldsMax }, deadlineMs);
    switch (found.kind) {
      case "missing":
        throw new ServiceError("SIGNAL_EMPTY", "The key does not exist.");
      case "tooMany":
        throw new ServiceError("SIGNAL_TOO_LARGE", "The hash has more fields than keysMax.");
      case "number": {
        const sum = new ReadingSum(undefined);
        sum.add(parseReading(found.text), undefined);
        return someOf(sum);
      }
      case "fields": {
        // Each text was parsed separately, so it needs no copy.
        const sum = new ReadingSum(keysMax, (text) => text);
        for (const [field, text] of found.texts) sum.add(parseReading(text), field);
        return someOf(sum);
      }
      case "other": {
        const words = "The key contains neither a number nor a list, nor a hash for a split limit.";
        throw new ServiceError("SIGNAL_MALFORMED", words);
      }
      default:
        return assertNever(found);
    }
  }
}
