/**
 * The first characters of a text, in memory of its own: what `slice` makes of a longer one keeps
 * all of that alive, and so a text of a caller, as long as it is kept itself.
 *
 * @param charsMax in UTF-16 units
 */
export function cutText(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text;
  return ownText(text.slice(0, charsMax));
}

/** The same text in memory of its own: for one that is kept, and may be a part of a longer one. */
export function ownText(text: string): string {
  // One character needs nothing of another text, and `join` copies.
  return text.split("").join("");
}
