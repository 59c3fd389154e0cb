/** A parsed pattern in which each `*` matches any text, including none. Created by `parseGlob`. */
export interface Glob {
  /** The text before the first `*`, or the whole pattern if it has none. */
  readonly first: string;
  /** The texts between two `*`, in order. Never empty. */
  readonly middles: readonly string[];
  /** The text after the last `*`. Absent if the pattern has none. */
  readonly last?: string;
}

/**
 * Splits a pattern at its `*`. Everything else is literal; there is no escape, and any text is a
 * valid pattern. Example: `foo*baz` has the first text `foo`, no middles, and the last text `baz`.
 */
export function parseGlob(pattern: string): Glob {
  const [first = "", ...rest] = pattern.split("*");
  const last = rest.pop();
  if (last === undefined) return { first, middles: [] };
  return { first, middles: rest.filter((literal) => literal !== ""), last };
}

/**
 * Whether the whole text matches. Example: `foo*baz` matches `foobaz` and `foo-bar-baz`, but not
 * `foobazx`.
 *
 * Uses no regular expression and no backtracking, so no input is expensive. The cost is at most the
 * length of the text times the length of the longest literal, and about the length of the text for
 * ordinary input.
 */
export function globMatches({ first, middles, last }: Glob, text: string): boolean {
  if (last === undefined) return text === first;
  if (!text.startsWith(first) || !text.endsWith(last)) return false;
  let at = first.length;
  for (const literal of middles) {
    // The earliest match leaves the most text for the literals that follow.
    const found = text.indexOf(literal, at);
    if (found === -1) return false;
    at = found + literal.length;
  }
  // The last text must not overlap an earlier match.
  return at <= text.length - last.length;
}
