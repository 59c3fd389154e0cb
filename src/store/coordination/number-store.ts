/** What a key holds that others write. */
export type FoundNumbers =
  /** There is no such key. */
  | { readonly kind: "missing" }
  /** It holds neither a number, nor a list, nor what was asked for. */
  | { readonly kind: "other" }
  /** It has more fields than were asked for. */
  | { readonly kind: "tooMany" }
  /** A number as its text, or the length of a list. */
  | { readonly kind: "number"; readonly text: string }
  /** Numbers by field, as texts. */
  | {
      readonly kind: "fields";
      readonly texts: readonly (readonly [field: string, text: string])[];
    };

/** What is asked of a key. */
export interface NumberQuestion {
  readonly key: string;
  /** The most fields, at most `numberFieldsMax`; 0: only one number is of use. */
  readonly fieldsMax: number;
}

/** Bytes of a number. */
export const numberBytesMax = 64;

/** Bytes of a field; longer ones are left aside. */
export const fieldBytesMax = 256;

/** Fields that are read at once: neither the store nor we do anything else meanwhile. */
export const numberFieldsMax = 3_000;

/** Reads what others write into the store, and never more of it than is of use. */
export interface NumberStore {
  /** @throws ServiceError STORE_ codes */
  read(question: NumberQuestion, deadlineMs: number): Promise<FoundNumbers>;
}
