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
  // A tenth of the time of split and join. Two bytes a character where one cannot hold it.
  const copy = Buffer.from(text, "latin1").toString("latin1");
  return copy === text ? copy : Buffer.from(text, "utf16le").toString("utf16le");
}
