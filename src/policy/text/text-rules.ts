import { quoteText } from "../problems/problem.js";
import type { Finding } from "../problems/problem-log.js";

/** What a text may be. */
export interface TextRule {
  readonly charsMax: number;
  /** A character that must not occur. */
  readonly forbidden: RegExp;
  /** What is right, for messages. */
  readonly expected: string;
}

/** What is wrong with a text by a rule; undefined: nothing. */
export function textFault(text: string, rule: TextRule): Finding | undefined {
  const { expected } = rule;
  if (text.length > rule.charsMax) {
    const message = `the text has ${text.length} characters, which is too long`;
    return { id: "HG131", message, expected };
  }
  if (rule.forbidden.test(text)) {
    const message = `${quoteText(text)} contains a character that is not allowed`;
    return { id: "HG132", message, expected };
  }
  return text === "" ? { id: "HG130", message: "a text is empty", expected } : undefined;
}

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

/** `key`: any text without control characters. */
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

/**
 * `name`: Envoy writes it as it is between quotes into `x-ratelimit-limit`, where commas and
 * semicolons divide parts, as in structured fields (RFC 9651); `|` divides those of a StatsD line.
 */
export const nameRule: TextRule = {
  charsMax: nameCharsMax,
  forbidden: /[^ -~]|["\\,;|]/,
  expected: `1 to ${nameCharsMax} printable ASCII characters, none of " \\ , ; |`,
};
