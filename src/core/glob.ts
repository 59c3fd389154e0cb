/**
 * Whether `text` matches `pattern`, in which each `*` stands for any text, also none; everything else
 * is literal. Linear in both (times the length of the longest literal), whatever the caller sends: no
 * regular expression, no backtracking over more than one `*`.
 *
 * Example: `foo*baz` matches `foobaz` and `foo-bar-baz`, not `foobazx`.
 */
export function globMatches(pattern: string, text: string): boolean {
  const literals = pattern.split("*");
  const first = literals[0] ?? "";
  if (literals.length === 1) return text === pattern;
  const last = literals[literals.length - 1] ?? "";
  if (text.length < first.length + last.length) return false;
  if (!text.startsWith(first) || !text.endsWith(last)) return false;
  const end = text.length - last.length;
  let at = first.length;
  for (let i = 1; i < literals.length - 1; i += 1) {
    const literal = literals[i] ?? "";
    // The earliest place is always a right choice: it leaves the most text to the literals after it.
    const found = text.indexOf(literal, at);
    if (found === -1 || found + literal.length > end) return false;
    at = found + literal.length;
  }
  return true;
}
