import { quoteText } from "../problems/problem.js";
import type { Finding } from "../problems/problem-log.js";

/** Requirements for a text. */
export interface TextRule {
  readonly charsMax: number;
  /** A character that must not occur. */
  readonly forbidden: RegExp;
  /** Description of a valid text, for messages. */
  readonly expected: string;
}

/** Checks a text against a rule. Returns the problem, or undefined if there is none. */
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

/** Maximum length of a domain, in characters. */
export const domainCharsMax = 256;

/** Maximum length of a descriptor key, in characters. */
export const keyCharsMax = 256;

/** Maximum length of a descriptor value or pattern, in characters. */
export const valueCharsMax = 1_024;

/** Maximum length of the name of a limit or policy, in characters. */
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
 * `name`: Envoy writes it unchanged, in quotes, into `x-ratelimit-limit`. Commas and semicolons
 * separate parts there, as in structured fields (RFC 9651), and `|` those of a StatsD line.
 */
export const nameRule: TextRule = {
  charsMax: nameCharsMax,
  forbidden: /[^ -~]|["\\,;|]/,
  expected: `1 to ${nameCharsMax} printable ASCII characters, none of " \\ , ; |`,
};
