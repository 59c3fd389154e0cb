import { type DiffLine, diffLines } from "../../core/collections/line-diff.js";

/** Most lines that a difference shows. */
export const shownLinesMax = 200;

const signs = { same: " ", removed: "-", added: "+" } as const;

/**
 * What changes from one text to another, as lines that begin with `-`, `+` or a space; `...` stands
 * where lines that agree are left out. Empty where nothing does.
 */
export function diffTexts(before: string, after: string): readonly string[] {
  const shown = diffLines(before, after).map(signed);
  const more = shown.length - shownLinesMax;
  return more > 0 ? [...shown.slice(0, shownLinesMax), `... and ${more} more lines`] : shown;
}

function signed({ kind, text }: DiffLine): string {
  return kind === "gap" ? "..." : `${signs[kind]} ${text}`.trimEnd();
}
