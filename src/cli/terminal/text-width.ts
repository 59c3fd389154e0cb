/**
 * Characters that take two terminal columns: East Asian wide and full-width characters, and emoji.
 *
 * Source: Unicode Standard Annex 11, the ranges that are wide throughout.
 */
const wide = new RegExp(
  "[\\u1100-\\u115f\\u2e80-\\u303e\\u3041-\\ua4cf\\ua960-\\ua97f\\uac00-\\ud7a3\\uf900-\\ufaff" +
    "\\ufe10-\\ufe19\\ufe30-\\ufe6f\\uff01-\\uff60\\uffe0-\\uffe6\\u{16fe0}-\\u{18d08}" +
    "\\u{1aff0}-\\u{1b2fb}\\u{20000}-\\u{3fffd}]|\\p{Emoji_Presentation}",
  "u",
);

/** Characters that combine with the previous one. */
const combining = /\p{Mn}|\p{Me}/u;

const onlyNarrow = /^[\u0020-\u02ff\u2010-\u2bff]*$/;

/** Returns the terminal columns of a text without control characters. */
export function textWidth(text: string): number {
  if (onlyNarrow.test(text) && !/\p{Emoji_Presentation}/u.test(text)) return text.length;
  let width = 0;
  for (const character of text) width += characterWidth(character);
  return width;
}

/** Shortens a text to at most `columnsMax` columns. A shortened text ends with `…`. */
export function truncateText(text: string, columnsMax: number): string {
  if (textWidth(text) <= columnsMax) return text;
  return `${fittingPart(text, columnsMax - 1)}…`;
}

/**
 * Wraps a text into lines of at most `columnsMax` columns, at spaces, and within words longer than
 * a line. If there are more than `linesMax` lines, the last one ends with `…`.
 */
export function wrapText(text: string, columnsMax: number, linesMax = 4): readonly string[] {
  const columns = Math.max(wrappedColumnsMin, columnsMax);
  const lines: string[] = [];
  let rest = text;
  while (textWidth(rest) > columns) {
    if (lines.length === linesMax - 1) return [...lines, truncateText(rest, columns)];
    const fits = fittingPart(rest, columns);
    const isEndOfWord = rest.charAt(fits.length) === " ";
    const space = isEndOfWord ? fits.length : fits.lastIndexOf(" ");
    // A word longer than half a line is broken, to avoid a line that is mostly empty.
    const line = space > fits.length / 2 ? fits.slice(0, space) : fits;
    lines.push(line.trimEnd());
    rest = rest.slice(line.length).trimStart();
  }
  return [...lines, rest];
}

/** Minimum wrap width, for any size of the window. */
const wrappedColumnsMin = 8;

/** Returns the longest start of a text that fits. */
function fittingPart(text: string, columnsMax: number): string {
  let part = "";
  let width = 0;
  for (const character of text) {
    width += characterWidth(character);
    if (width > columnsMax) break;
    part += character;
  }
  return part;
}

function characterWidth(character: string): number {
  // Some combining characters are within wide ranges.
  if (combining.test(character)) return 0;
  return wide.test(character) ? 2 : 1;
}
