import type { TextRule } from "./node-reader.js";

/** Longest domain, in characters. */
export const domainCharsMax = 256;

/** Longest descriptor key, in characters. */
export const keyCharsMax = 256;

/** Longest descriptor value or pattern, in characters. */
export const valueCharsMax = 1_024;

/** Longest name of a limit or of a policy, in characters. */
export const nameCharsMax = 128;

const control = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u;

/** `domain`: any text without control characters. */
export const domainRule: TextRule = {
  charsMax: domainCharsMax,
  forbidden: control,
  expected: `a text of 1 to ${domainCharsMax} characters, no control characters`,
};

/** `key`: any text without control characters and `*`. */
export const keyRule: TextRule = {
  charsMax: keyCharsMax,
  forbidden: control,
  expected: `a text of 1 to ${keyCharsMax} characters, no control characters`,
};

/** `value`: any text without control characters. */
export const valueRule: TextRule = {
  charsMax: valueCharsMax,
  forbidden: control,
  expected: `a text of 1 to ${valueCharsMax} characters, no control characters`,
};

/** `name`: stands in response headers, inside the quotes of a structured field (RFC 9651). */
export const nameRule: TextRule = {
  charsMax: nameCharsMax,
  forbidden: /[^ -~]|["\\,;]/,
  expected: `1 to ${nameCharsMax} printable ASCII characters, none of " \\ , ;`,
};
