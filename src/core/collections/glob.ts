/** A pattern in which each `*` stands for any text, also none; made by `parseGlob`. */
export interface Glob {
  /** What a text starts with: all of the pattern when it holds no `*`. */
  readonly first: string;
  /** What stands between two `*`, in order; never empty texts. */
  readonly middles: readonly string[];
  /** What a text ends with; absent when the pattern holds no `*`. */
  readonly last?: string;
}

/**
 * Splits a pattern at its `*`; everything else is literal, there is no escape. Any text is a
 * pattern. Example: `foo*baz` has the first `foo`, no middles and the last `baz`.
 */
export function parseGlob(pattern: string): Glob {
  const [first = "", ...rest] = pattern.split("*");
  const last = rest.pop();
  if (last === undefined) return { first, middles: [] };
  return { first, middles: rest.filter((literal) => literal !== ""), last };
}

/**
 * Whether all of `text` matches. Example: `foo*baz` matches `foobaz` and `foo-bar-baz`, not
 * `foobazx`.
 *
 * No regular expression and no backtracking: the text is walked once, whatever the caller sends.
 * The work is at most its length times the longest literal's (text and literal that nearly match
 * at every place), and about its length for ordinary texts.
 */
export function globMatches({ first, middles, last }: Glob, text: string): boolean {
  if (last === undefined) return text === first;
  if (!text.startsWith(first) || !text.endsWith(last)) return false;
  let at = first.length;
  for (const literal of middles) {
    // The earliest place is always a right choice: it leaves the most text to those after it.
    const found = text.indexOf(literal, at);
    if (found === -1) return false;
    at = found + literal.length;
  }
  // What ends the text must not overlap what was found before it.
  return at <= text.length - last.length;
}
