import { budgetProblemRows } from "./budget-problems.js";
import type { ProblemRow } from "./problem-row.js";
import { quotaProblemRows } from "./quota-problems.js";
import { roomProblemRows } from "./room-problems.js";
import { serviceProblemRows } from "./service-problems.js";

/** Mistakes in files in general, and in limits. */
const fileProblemRows = {
  HG101: {
    title: "The text is not valid YAML.",
    remedy:
      "Fix the syntax at the caret. Check the indentation, quotes and brackets just before it.",
  },
  HG102: {
    title: "The text contains a character that YAML does not allow.",
    remedy: "Save the file as UTF-8 without control characters, with LF or CRLF line endings.",
  },
  HG103: {
    title: "A map has the same key twice.",
    remedy: "Remove one of the two. Otherwise the second would silently replace the first.",
  },
  HG104: {
    title: "A merge key has no map to merge, or an alias is used as a key.",
    remedy:
      "Give `<<` a map or a list of maps (`<<: *x`), outside metadata. Write keys out in full.",
  },
  HG105: {
    title: "YAML tags and directives are not supported.",
    remedy:
      "Remove the tag (`!...`) or directive (`%...`). The type follows from how " +
      "you write the value.",
  },
  HG106: {
    title: "A file contains more than one YAML document.",
    remedy: "Move everything after the second `---` to its own file.",
  },
  HG107: {
    title: "The text is too large.",
    remedy: "Split the policy into several files, or shorten it.",
  },
  HG108: {
    title: "The text is nested too deeply.",
    remedy: "Use fewer levels. A descriptor rarely needs more than five entries.",
  },
  HG109: {
    title: "The file has too many parts.",
    remedy: "Split the policy into several files.",
  },
  HG110: {
    title: "The file contains no policy.",
    remedy: "Write a policy, or remove the file.",
  },
  HG111: {
    title: "Headgate does not recognize this kind of file.",
    remedy: "Start with `domain:`, or with `apiVersion: headgate.dev/v1alpha1` and `kind: Policy`.",
  },
  HG112: {
    title: "An alias refers to no anchor that ends above it.",
    remedy: "Put an anchor (`&x`) above the alias. If the text starts with `*`, quote it.",
  },
  HG113: {
    title: "A file has too many aliases, or they expand to too much.",
    remedy: "Use fewer or smaller aliases, or split the policy into several files.",
  },
  HG114: {
    title: "A file that declares an end marker does not end with it.",
    remedy: "Write the file again in full, or end it with a line of three dots.",
  },
  HG120: {
    title: "A key is unknown in this place.",
    remedy: "Correct the spelling, or move the key to where it belongs.",
  },
  HG121: {
    title: "A key is known but not supported yet.",
    remedy:
      "Remove it. Headgate rejects it because ignoring it would change what the policy means.",
  },
  HG122: {
    title: "A key is supported in `kind: Policy` only.",
    remedy:
      "Move the rules to a file with `apiVersion: headgate.dev/v1alpha1`, under `spec.rateLimits`.",
  },
  HG123: {
    title: "A map key is not text.",
    remedy: "Use one of the expected keys. Check for a missing `-` or quote.",
  },
  HG124: {
    title: "A value has the wrong type.",
    remedy: "Write the value in the expected form. Check the indentation of the following lines.",
  },
  HG125: {
    title: "A required key is missing.",
    remedy: "Add it.",
  },
  HG126: {
    title: "Two keys exclude each other.",
    remedy: "Remove one of them.",
  },
  HG127: {
    title: "A setting has no effect here.",
    remedy: "Move it to the descriptor that has the limit. Settings are not inherited.",
  },
  HG128: {
    title: "A descriptor without a pattern sets `share_threshold`.",
    remedy: "Put a `*` into the value whose matches share one limit, or remove the setting.",
  },
  HG130: { title: "A text is empty.", remedy: "Provide a value." },
  HG131: { title: "A text is too long.", remedy: "Shorten it." },
  HG132: {
    title: "A text contains a character that is not allowed.",
    remedy: "Remove the character. Names appear in response headers, metrics and logs.",
  },
  HG133: {
    title: "A value is not one of the allowed values.",
    remedy: "Use one of the allowed values.",
  },
  HG134: {
    title: "Metadata contains a number that readers could parse differently.",
    remedy: "Write it without a leading zero and below 2^53, or quote it.",
  },
  HG135: {
    title: "The metadata of a rule is too large.",
    remedy: "Shorten it. Every response that the rule allows may carry it.",
  },
  HG140: {
    title: "A value is not a whole number.",
    remedy: "Write plain digits without quotes, fraction, exponent, separators or leading zeros.",
  },
  HG141: { title: "A number is out of range.", remedy: "Choose a number within the range." },
  HG142: {
    title: "A unit is unknown.",
    remedy: "Use second, minute, hour, day, week, month or year.",
  },
  HG143: {
    title: "A period cannot be parsed.",
    remedy:
      "Write whole weeks, days, hours, minutes and seconds, largest first: 10s, " +
      "5m, 1h30m, 1d, 2w.",
  },
  HG144: {
    title: "A limit takes longer than ten years to drain.",
    remedy: "Choose a shorter period, a higher rate or a smaller burst.",
  },
  HG145: {
    title: "A time zone is unknown.",
    remedy: "Use a name from the IANA time zone database, such as Europe/Stockholm or UTC.",
  },
  HG150: {
    title: "A domain is defined twice.",
    remedy: "Put all its descriptors into one list, or set MERGE_DOMAIN_CONFIG=true.",
  },
  HG151: {
    title: "A list contains the same descriptor twice.",
    remedy: "Remove one of the two, or merge their nested descriptors.",
  },
  HG152: {
    title: "Two limits of one descriptor would share their state.",
    remedy: "Give each limit its own `name`. Without a name, the period identifies a limit.",
  },
  HG153: {
    title: "A limit replaces a limit of its own descriptor.",
    remedy: "Name a limit of another descriptor that can match the same request.",
  },
  HG154: {
    title: "A limit replaces a name that no limit has.",
    remedy: "Give the replaced limit this `name`. Both limits must be in the same domain.",
  },
  HG160: {
    title: "A policy exceeds a maximum count.",
    remedy: "Replace lists of single values with a pattern, or with the key alone.",
  },
  HG161: {
    title: "The path of a descriptor is too long.",
    remedy: "Use fewer levels, or shorter keys and values.",
  },
  HG170: {
    title: "A limit without `requests_per_unit` denies every request.",
    remedy: "Set the number, or write `requests_per_unit: 0` to deny everything on purpose.",
    severity: "warning",
  },
  HG171: {
    title: "A `rate_limit` has no value, so nothing is limited.",
    remedy: "Check whether the file is truncated. Write the limit, or remove `rate_limit`.",
    severity: "warning",
  },
  HG172: {
    title: "A number is used where a text is expected, and is read as written.",
    remedy: "Quote it. Headgate compares it as text with what Envoy sends.",
    severity: "warning",
  },
  HG173: {
    title: "A limit delays requests, and no service asks for it in ext_proc.",
    remedy:
      "Set `rateLimit.inExtProc: true` on the services of this domain, or remove `over`. " +
      "Calls of Envoy's rate limit filter are refused at once.",
    severity: "warning",
  },
  HG174: {
    title: "A limit sends requests elsewhere, and no service asks for it in ext_proc.",
    remedy:
      "Set `rateLimit.inExtProc: true` on the services of this domain, or use `annotate`. " +
      "Envoy's rate limit filter sets headers, and does not choose the route again.",
    severity: "warning",
  },
  HG175: {
    title: "A limit with `spread: global` is too small to divide among the regions.",
    remedy:
      "Raise `burst`, or `requests_per_unit` of a limit in windows, to two hits for each region. " +
      "A region with a burst of one hit cannot lend.",
    severity: "warning",
  },
  HG176: {
    title: "A limit has `spread: global`, and this Headgate has no regions.",
    remedy:
      "Set HEADGATE_REGION and HEADGATE_REGION_STORES in every region, or remove `spread`. " +
      "Until then, each region enforces the whole limit.",
    severity: "warning",
  },
} as const satisfies Record<string, ProblemRow>;

/** Every mistake that a policy can contain; the docs list these rows. An id keeps its meaning. */
export const problemRows = {
  ...fileProblemRows,
  ...serviceProblemRows,
  ...quotaProblemRows,
  ...roomProblemRows,
  ...budgetProblemRows,
} as const;

/** The id of a row. */
export type ProblemId = keyof typeof problemRows;

/** One mistake in a policy's text: plain data, so that it can be sent to other threads. */
export interface Problem {
  /** The caller's name of the source. */
  readonly file: string;
  /** 1-based. */
  readonly line: number;
  /** 1-based, in UTF-16 units, as editors and compilers count. */
  readonly column: number;
  readonly id: ProblemId;
  /** One sentence; quotes at most a short piece of the text, with control characters escaped. */
  readonly message: string;
  /** The line, or the part around the place if it is long; each character is visible. */
  readonly excerpt: string;
  /** What the caret marks, in characters (code points) of `excerpt`; `length` is at least 1. */
  readonly caret: { readonly start: number; readonly length: number };
  /** Description of a valid text. */
  readonly expected?: string;
  /** The nearest valid text. */
  readonly suggestion?: string;
}

/**
 * Formats a problem as text of several lines, without a newline at the end.
 *
 * Example:
 *
 *     shop.yaml:5:13: HG142 "minut" is not a unit
 *       5 |       unit: minut
 *         |             ^^^^^
 *       expected: second, minute, hour, day, week, month or year
 *       did you mean: minute
 */
export function formatProblem(problem: Problem): string {
  const { file, line, column, id, message, excerpt, caret, expected, suggestion } = problem;
  const gutter = " ".repeat(String(line).length);
  const lines = [
    `${visibleText(file)}:${line}:${column}: ${id} ${message}`,
    `  ${line} | ${excerpt}`.trimEnd(),
    `  ${gutter} | ${" ".repeat(caret.start)}${"^".repeat(caret.length)}`,
  ];
  if (expected !== undefined) lines.push(`  expected: ${expected}`);
  if (suggestion !== undefined) lines.push(`  did you mean: ${suggestion}`);
  return lines.join("\n");
}

/** Formats problems as text, with the number of further ones; empty if there are none. */
export function formatProblems(found: {
  readonly problems: readonly Problem[];
  readonly unreportedCount: number;
}): string {
  const parts = found.problems.map(formatProblem);
  if (found.unreportedCount > 0) parts.push(`and ${found.unreportedCount} more`);
  return parts.join("\n");
}

/** Maximum length of the user's text that a message quotes, in characters. */
export const quotedCharsMax = 40;

/** Quotes the user's text, shortened to `quotedCharsMax` and without control characters. */
export function quoteText(text: string): string {
  const isLong = text.length > quotedCharsMax;
  return `"${visibleText(isLong ? text.slice(0, quotedCharsMax) : text)}${isLong ? "..." : ""}"`;
}

/** Replaces each character that a terminal would interpret, or not show, by U+FFFD. */
export function visibleText(text: string): string {
  return text.replaceAll("\t", " ").replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, "\ufffd");
}

/** Joins words: `a, b or c`. */
export function listWords(words: readonly string[]): string {
  if (words.length < 2) return words.join("");
  return `${words.slice(0, -1).join(", ")} or ${words[words.length - 1]}`;
}
