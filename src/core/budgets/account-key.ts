import { assert } from "../base/errors.js";
import { cutText } from "../base/text.js";
import type { AccountKey } from "./account.js";

/** The longest value that is part of a key as it is, in UTF-16 units. */
export const accountValueLengthMax = 128;

/** Of a longer value so much stands before its digest, for people. */
const headLength = 32;

/**
 * Returns the key of one account of a budget. Equal keys have equal parts: a part is escaped as in
 * URLs (`%` and `/`, control characters, `#`), and parts are separated by `/`. Of a value that is
 * longer than `accountValueLengthMax` it has the beginning and `#` with the digest. Example:
 * `accountKey("team-month", ["research", "gpt-4o"], …)` is `team-month/research/gpt-4o`.
 *
 * @param budget a name in the policy
 * @param digest hexadecimal, of a fixed length and collision-resistant, such as SHA-256
 */
export function accountKey(
  budget: string,
  values: readonly string[],
  digest: (text: string) => string,
): AccountKey {
  const parts = values.map((value) => {
    const text = value.toWellFormed();
    if (text.length <= accountValueLengthMax) return escaped(text);
    const head = cutText(text, headLength).toWellFormed();
    return `${escaped(head)}#${digest(text)}`;
  });
  const key = [budgetPart(budget), ...parts].join("/");
  assert(isAccountKey(key), "the values of an account are bounded");
  return key;
}

/** The budget and the values that a key was made of. */
export interface AccountName {
  readonly budget: string;
  /** A value that was too long is its beginning, `…#` and its digest. */
  readonly values: readonly string[];
}

/** Reads what `accountKey` has made. */
export function readAccountKey(key: AccountKey): AccountName {
  const [budget = "", ...values] = partsOf(key, unescaped);
  return { budget, values };
}

/**
 * The key of an account that somebody names, also by a long value as `readAccountKey` reads it: its
 * beginning and its digest. For operators; a caller could name another one's account so.
 */
export function namedAccountKey(
  { budget, values }: AccountName,
  digest: (text: string) => string,
): AccountKey {
  const key = accountKey(budget, values, digest);
  // The mark and the digest of such a value are escaped as any text is.
  const named = key.replaceAll(/…%23([0-9a-f]{64})(?=\/|$)/g, "#$1");
  return isAccountKey(named) ? named : key;
}

function partsOf(key: AccountKey, read: (text: string) => string): readonly string[] {
  return key.split("/").map((part) => {
    const [head = "", digest] = part.split("#");
    return digest === undefined ? read(head) : `${read(head)}…#${digest}`;
  });
}

/** The longest key, in UTF-16 units. */
export const accountKeyLengthMax = 4_096;

/** Whether a text may be a key: bounded, and escaped as `accountKey` does. */
export function isAccountKey(text: string): text is AccountKey {
  return text.length <= accountKeyLengthMax && keyPattern.test(text);
}

/** The budget of a key, as it stands there. */
export function budgetPartOf(key: AccountKey): string {
  const end = key.indexOf("/");
  return end < 0 ? key : key.slice(0, end);
}

/** A budget's name as it stands in keys. */
export function budgetPart(budget: string): string {
  return escaped(budget.toWellFormed());
}

function escaped(text: string): string {
  return text.replaceAll(/[\p{Cc}\u2028\u2029%/#]/gu, encodeURIComponent);
}

function unescaped(text: string): string {
  return text.replaceAll(escapePattern, decodeURIComponent);
}

const escapePattern = /%(?:2[F35]|[01][\dA-F]|7F|C2%[89][\dA-F]|E2%80%A[89])/g;

const keyPattern = new RegExp(`^(?:[^\\p{Cc}\\p{Cs}\u2028\u2029%]|${escapePattern.source})*$`, "u");
