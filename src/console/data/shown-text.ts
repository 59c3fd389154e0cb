/** Characters that are invisible, or that change the direction of the text around them. */
const unseen = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\u115f\u1160\u3164\uffa0]/gu;

/** Returns a caller's text with invisible characters replaced by their codes. */
export function showText(text: string): string {
  return text.replaceAll(unseen, (found) => {
    return `\\u{${(found.codePointAt(0) ?? 0).toString(16)}}`;
  });
}

/** Shortens a text for limited space. Show the whole text in a title. */
export function clipText(text: string, charactersMax: number): string {
  const characters = [...text.slice(0, charactersMax * 2 + 2)];
  if (characters.length <= charactersMax) return text;
  return `${characters.slice(0, charactersMax - 1).join("")}…`;
}
