import { assert } from "../base/errors.js";
import { cutText } from "../base/text.js";
import type { AccountKey } from "./account.js";

/** Maximum length of a value that is part of a key as it is, in UTF-16 units. */
export const accountValueLengthMax = 128;

/** How much of a longer value precedes its digest, for people. */
const headLength = 32;

/**
 * Returns the key of one account of a budget. Equal keys have equal parts: a part is escaped as in
 * URLs (`%` and `/`, control characters, `#`), and parts are separated by `/`. A value that is
 * longer than `accountValueLengthMax` becomes its beginning and `#` with its digest. Example:
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

/** The budget and the values of a key. */
export interface AccountName {
  readonly budget: string;
  /** A value that was too long is represented by its beginning, `…#` and its digest. */
  readonly values: readonly string[];
}

/** Reads a key from `accountKey`. */
export function readAccountKey(key: AccountKey): AccountName {
  const [budget = "", ...values] = partsOf(key, unescaped);
  return { budget, values };
}

/**
 * Returns the key of an account as an operator names it. Also accepts a long value as returned by
 * `readAccountKey`: its beginning and digest. Not for callers, who could name others' accounts.
 */
export function namedAccountKey(
  { budget, values }: AccountName,
  digest: (text: string) => string,
): AccountKey {
  const key = accountKey(budget, values, digest);
  // `accountKey` has escaped the mark and the digest of such a value like any text.
  const named = key.replaceAll(/…%23([0-9a-f]{64})(?=\/|$)/g, "#$1");
  return isAccountKey(named) ? named : key;
}

function partsOf(key: AccountKey, read: (text: string) => string): readonly string[] {
  return key.split("/").map((part) => {
    const [head = "", digest] = part.split("#");
    return digest === undefined ? read(head) : `${read(head)}…#${digest}`;
  });
}

/** Maximum length of a key, in UTF-16 units. */
export const accountKeyLengthMax = 4_096;

/** Reports whether a text may be a key: bounded, and escaped as in `accountKey`. */
export function isAccountKey(text: string): text is AccountKey {
  return text.length <= accountKeyLengthMax && keyPattern.test(text);
}

/** Returns the budget of a key, as escaped there. */
export function budgetPartOf(key: AccountKey): string {
  const end = key.indexOf("/");
  return end < 0 ? key : key.slice(0, end);
}

/** Returns a budget's name as escaped in keys. */
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
