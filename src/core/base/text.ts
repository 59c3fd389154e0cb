/** A name of ours as metrics and answers write values: `queueFull` is `queue_full`. */
export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/**
 * The first characters of a text, in memory of its own: what `slice` makes of a longer one keeps
 * all of that alive, and so a text of a caller, as long as it is kept itself.
 *
 * @param charsMax in UTF-16 units
 */
export function cutText(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text;
  // `join` copies.
  return text.slice(0, charsMax).split("").join("");
}
