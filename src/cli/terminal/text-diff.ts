import { type DiffLine, diffLines } from "../../core/collections/line-diff.js";

/** Maximum number of lines in a diff. */
export const shownLinesMax = 200;

const signs = { same: " ", removed: "-", added: "+" } as const;

/**
 * Returns the differences between two texts as lines that start with `-`, `+` or a space; `...`
 * replaces unchanged lines that are left out. Empty if the texts are equal.
 */
export function diffTexts(before: string, after: string): readonly string[] {
  const shown = diffLines(before, after).map(signed);
  const more = shown.length - shownLinesMax;
  return more > 0 ? [...shown.slice(0, shownLinesMax), `... and ${more} more lines`] : shown;
}

function signed({ kind, text }: DiffLine): string {
  return kind === "gap" ? "..." : `${signs[kind]} ${text}`.trimEnd();
}
