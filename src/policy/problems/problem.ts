import type { ProblemRow } from "./problem-row.js";
import { quotaProblemRows } from "./quota-problems.js";
import { serviceProblemRows } from "./service-problems.js";

/** Mistakes in a file as such, and in limits. */
const fileProblemRows = {
  HG101: {
    title: "The text is not valid YAML.",
    remedy:
      "Correct the line at the caret; look at indentation, quotes and brackets just before it.",
  },
  HG102: {
    title: "The text holds a character that YAML does not allow.",
    remedy:
      "Save the file as UTF-8 text, without control characters and with LF or CRLF line ends.",
  },
  HG103: {
    title: "A name stands twice in one map.",
    remedy: "Keep one of the two; the second would silently replace the first.",
  },
  HG104: {
    title: "A merge key has no map to merge, or an alias stands in place of a name.",
    remedy: "Give `<<` a map or a list of maps (`<<: *x`), outside metadata; write names out.",
  },
  HG105: {
    title: "YAML tags and directives are not accepted.",
    remedy:
      "Remove the tag (`!...`) or directive (`%...`); types follow from how a value is written.",
  },
  HG106: {
    title: "A file holds more than one YAML document.",
    remedy: "Move what follows the second `---` to a file of its own.",
  },
  HG107: {
    title: "The text is too large.",
    remedy: "Split the policy into several files, or shorten it.",
  },
  HG108: {
    title: "The text is nested too deeply.",
    remedy: "Use fewer levels; a descriptor rarely has more than five entries.",
  },
  HG109: {
    title: "The text has too many parts for one file.",
    remedy: "Split the policy into several files.",
  },
  HG110: {
    title: "The file holds no policy.",
    remedy: "Write a policy, or remove the file.",
  },
  HG111: {
    title: "The file is not of a kind that Headgate reads.",
    remedy: "Begin with `domain:`, or with `apiVersion: headgate.dev/v1alpha1` and `kind: Policy`.",
  },
  HG112: {
    title: "An alias names nothing that ends above it.",
    remedy:
      "Give the part an anchor (`&x`) above the alias; put a text that begins with `*` in quotes.",
  },
  HG113: {
    title: "A file's aliases are too many, or stand for too much.",
    remedy: "Use fewer aliases of smaller parts, or split the policy into several files.",
  },
  HG114: {
    title: "A file that promises an end marker has none.",
    remedy: "Write it again to its end; or end it with a line of three dots.",
  },
  HG120: {
    title: "A name is unknown in its place.",
    remedy: "Correct its spelling, or move it to the place where it belongs.",
  },
  HG121: {
    title: "A name is known, but not supported yet.",
    remedy: "Remove it; it is refused because ignoring it would change what the policy means.",
  },
  HG122: {
    title: "A name belongs to `kind: Policy` only.",
    remedy:
      "Move the rules to a file with `apiVersion: headgate.dev/v1alpha1`, under `spec.rateLimits`.",
  },
  HG123: {
    title: "A name in a map is not text.",
    remedy: "Use one of the expected names; look for a missing `-` or a missing quote.",
  },
  HG124: {
    title: "A value is of the wrong kind.",
    remedy: "Write the value as it is expected; look at the indentation of the lines after it.",
  },
  HG125: {
    title: "A required name is missing.",
    remedy: "Add it.",
  },
  HG126: {
    title: "Two names exclude each other.",
    remedy: "Keep one of them.",
  },
  HG127: {
    title: "A setting has nothing to act on.",
    remedy: "Move it to the descriptor that has the limit: settings are not inherited.",
  },
  HG128: {
    title: "A threshold is shared where there is no pattern.",
    remedy: "Put a `*` into the value whose matches are to share one limit, or remove it.",
  },
  HG130: { title: "A text is empty.", remedy: "Fill it in." },
  HG131: { title: "A text is too long.", remedy: "Shorten it." },
  HG132: {
    title: "A text holds a character that it must not hold.",
    remedy: "Remove the character; names end up in response headers, metrics and logs.",
  },
  HG133: { title: "A value is not one of the choices.", remedy: "Use one of the choices." },
  HG134: {
    title: "Metadata holds a number that would arrive as another one.",
    remedy: "Write it without a leading zero and below 2^53, or put it in quotes.",
  },
  HG135: {
    title: "A rule's metadata is too large.",
    remedy: "Shorten it: each response that the rule lets pass may carry it.",
  },
  HG140: {
    title: "A value is not a whole number.",
    remedy: "Write plain digits: no quotes, fraction, exponent, separators or leading zeros.",
  },
  HG141: { title: "A number is out of range.", remedy: "Choose a number within the range." },
  HG142: {
    title: "A unit is unknown.",
    remedy: "Use second, minute, hour, day, week, month or year.",
  },
  HG143: {
    title: "A period is not readable.",
    remedy:
      "Write whole seconds, minutes, hours, days and weeks, largest first: 10s, 5m, 1h30m, 1d, 2w.",
  },
  HG144: {
    title: "A limit reaches beyond ten years.",
    remedy: "Choose a shorter period, a higher rate or a smaller burst.",
  },
  HG145: {
    title: "A time zone is unknown.",
    remedy: "Use a name of the IANA time zone database, such as Europe/Stockholm or UTC.",
  },
  HG150: {
    title: "A domain is defined twice.",
    remedy: "Put all its descriptors into one list, or set MERGE_DOMAIN_CONFIG.",
  },
  HG151: {
    title: "A descriptor is defined twice in one list.",
    remedy: "Keep one of the two, or join what is below them.",
  },
  HG152: {
    title: "Two limits of one descriptor would share their state.",
    remedy: "Give each limit a `name` of its own; without one, a limit is known by its period.",
  },
  HG153: {
    title: "A limit replaces one of its own descriptor.",
    remedy: "Name a limit of another descriptor that the same request may meet.",
  },
  HG154: {
    title: "A replaced name is no limit's.",
    remedy: "Give the limit that is to be replaced this `name`; both stand in one domain.",
  },
  HG160: {
    title: "There is more of something than a policy may hold.",
    remedy: "Replace many single values with a pattern or with the key alone.",
  },
  HG161: {
    title: "A descriptor's path is too long.",
    remedy: "Use fewer levels, or shorter keys and values.",
  },
  HG170: {
    title: "A limit does not say how many requests it lets pass, so none does.",
    remedy: "Write the number, or `requests_per_unit: 0` to refuse everything.",
    severity: "warning",
  },
  HG171: {
    title: "A `rate_limit` has no value, so nothing is limited.",
    remedy: "See whether the file was cut off; write the limit, or leave `rate_limit` out.",
    severity: "warning",
  },
  HG172: {
    title: "A number stands for a text, and is taken as it is written.",
    remedy: "Put it in quotes: what Envoy sends is compared with it as text.",
    severity: "warning",
  },
} as const satisfies Record<string, ProblemRow>;

/** Every mistake a policy can hold; the docs' table is these rows. An id keeps its meaning. */
export const problemRows = {
  ...fileProblemRows,
  ...serviceProblemRows,
  ...quotaProblemRows,
} as const;

/** A row's name. */
export type ProblemId = keyof typeof problemRows;

/** One mistake in a policy's text: plain data, so it may cross threads. */
export interface Problem {
  /** As the caller named the source. */
  readonly file: string;
  /** 1-based. */
  readonly line: number;
  /** 1-based, in UTF-16 units, as editors and compilers count. */
  readonly column: number;
  readonly id: ProblemId;
  /** One sentence; quotes at most a short piece of the text, with control characters escaped. */
  readonly message: string;
  /** The line, or the part of it around the place when it is long; one visible character each. */
  readonly excerpt: string;
  /** What the caret marks, in characters (code points) of `excerpt`; `length` is at least 1. */
  readonly caret: { readonly start: number; readonly length: number };
  /** What would have been right. */
  readonly expected?: string;
  /** The nearest right text. */
  readonly suggestion?: string;
}

/**
 * A problem as text of several lines, without a newline at the end.
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

/** Many problems as text, and how many more there were; empty when there are none. */
export function formatProblems(found: {
  readonly problems: readonly Problem[];
  readonly unreportedCount: number;
}): string {
  const parts = found.problems.map(formatProblem);
  if (found.unreportedCount > 0) parts.push(`and ${found.unreportedCount} more`);
  return parts.join("\n");
}

/** Longest piece of the user's text that a message quotes, in characters. */
export const quotedCharsMax = 40;

/** The user's text in quotes, shortened to `quotedCharsMax` and with nothing in it that acts. */
export function quoteText(text: string): string {
  const isLong = text.length > quotedCharsMax;
  return `"${visibleText(isLong ? text.slice(0, quotedCharsMax) : text)}${isLong ? "..." : ""}"`;
}

/** The text with each character that a terminal would act on, or not show, replaced by U+FFFD. */
export function visibleText(text: string): string {
  return text.replaceAll("\t", " ").replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, "\ufffd");
}

/** `a, b or c`. */
export function listWords(words: readonly string[]): string {
  if (words.length < 2) return words.join("");
  return `${words.slice(0, -1).join(", ")} or ${words[words.length - 1]}`;
}
