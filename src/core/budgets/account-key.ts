import type { AccountKey } from "./account.js";

/** The longest value that stands in a key as it is, in UTF-16 units. */
export const accountValueLengthMax = 256;

/** Parts the budget's name and the values; escaped in values. */
const separator = "|";

/**
 * The key of an account: the budget's name and the values of its `per`, in order, parted by `|`.
 * In values `%`, `|` and control characters are escaped as in URLs. A value that is too long, or is
 * no valid text, is represented by `%#` and its digest.
 *
 * Example: `accountKey("team", ["a|b", "gpt-4o"], …)` is `team|a%7Cb|gpt-4o`.
 *
 * @param digest a strong hash of a text, in hexadecimal
 */
export function accountKey(
  budget: string,
  values: readonly string[],
  digest: (text: string) => string,
): AccountKey {
  let key = budget;
  for (const value of values) key += separator + escaped(value, digest);
  return key as AccountKey;
}

/** The budget and the values of an account; a digest stays one. */
export function accountOf(key: AccountKey): {
  readonly budget: string;
  readonly values: readonly string[];
} {
  const [budget = "", ...values] = key.split(separator);
  return { budget, values: values.map(unescaped) };
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: those are what must not stay
const special = /[\u0000-\u001f\u007f-\u009f%|]/g;

function escaped(value: string, digest: (text: string) => string): string {
  if (value.length > accountValueLengthMax || !value.isWellFormed()) return `%#${digest(value)}`;
  return value.replace(special, (character) => {
    const code = character.charCodeAt(0).toString(16).toUpperCase();
    return `%${code.padStart(2, "0")}`;
  });
}

function unescaped(text: string): string {
  return text.replace(/%([0-9A-F]{2})/g, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  );
}
