/** Characters that a reader cannot see, or that turn the text around them. */
const unseen = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\u115f\u1160\u3164\uffa0]/gu;

/** What a caller sent, as text that shows all of itself: what cannot be seen stands as its code. */
export function showText(text: string): string {
  return text.replaceAll(unseen, (found) => {
    return `\\u{${(found.codePointAt(0) ?? 0).toString(16)}}`;
  });
}

/** Text for a place of limited width; the whole of it belongs into a title. */
export function clipText(text: string, charactersMax: number): string {
  const characters = [...text.slice(0, charactersMax * 2 + 2)];
  if (characters.length <= charactersMax) return text;
  return `${characters.slice(0, charactersMax - 1).join("")}…`;
}
