/** The value of a key that another system writes. */
export type FoundNumbers =
  /** The key does not exist. */
  | { readonly kind: "missing" }
  /** The value is neither a number, nor a list, nor what was asked for. */
  | { readonly kind: "other" }
  /** The value has more fields than were asked for. */
  | { readonly kind: "tooMany" }
  /** A number as text, or the length of a list. */
  | { readonly kind: "number"; readonly text: string }
  /** Numbers by field, as text. */
  | {
      readonly kind: "fields";
      readonly texts: readonly (readonly [field: string, text: string])[];
    };

/** A query for the numbers of one key. */
export interface NumberQuestion {
  readonly key: string;
  /** Maximum number of fields, at most `numberFieldsMax`. 0: a single number is expected. */
  readonly fieldsMax: number;
}

/** Maximum length of a number, in bytes. */
export const numberBytesMax = 64;

/** Maximum length of a field name, in bytes. Longer ones are skipped. */
export const fieldBytesMax = 256;

/** Maximum number of fields read at once. It blocks both the store and this process meanwhile. */
export const numberFieldsMax = 3_000;

/** Reads numbers that other systems write into the store, and no more data than needed. */
export interface NumberStore {
  /** @throws ServiceError STORE_ codes */
  read(question: NumberQuestion, deadlineMs: number): Promise<FoundNumbers>;
}
