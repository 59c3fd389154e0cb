/** Converts an internal name to the form for metrics and responses: `queueFull` to `queue_full`. */
export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/**
 * Returns the first characters of a text as a copy. The result of `slice` would keep the whole
 * text, which may be a caller's, in memory for as long as it is kept itself.
 *
 * @param charsMax in UTF-16 units
 */
export function cutText(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text;
  // `join` copies.
  return text.slice(0, charsMax).split("").join("");
}
