import { textWidth, truncateText, wrapText } from "./text-width.js";

/** A column of a table. */
export interface Column {
  readonly title: string;
  /** Where its cells stand; default left. */
  readonly align?: "left" | "right";
  /** Whether it gives way, with `…`, where a line would be too long. */
  readonly isFlexible?: boolean;
  /** What is left of it then at least, in columns of the terminal; default 8. */
  readonly columnsMin?: number;
  /** Whether it then goes on in a line below instead: sentences, lists. */
  readonly isWrapped?: boolean;
  /** Colours a cell that is laid out. */
  readonly paint?: (cell: string) => string;
}

/** The least that is left of a column that gives way, in columns of the terminal. */
const flexibleColumnsMin = 8;

const gap = 2;

/**
 * Draws a table for a terminal: a line of titles, and one for each row, two spaces between.
 *
 * @param columnsMax the length of a line; default as long as it takes
 */
export function drawTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  columnsMax: number = Number.POSITIVE_INFINITY,
): readonly string[] {
  const titles = columns.map(({ title }) => title);
  const wanted = columns.map((_, i) =>
    [titles, ...rows].reduce((width, cells) => Math.max(width, textWidth(cells[i] ?? "")), 0),
  );
  const widths = fitWidths(columns, wanted, columnsMax);
  return [titles, ...rows].flatMap((cells, row) => {
    const parts = columns.map(({ isWrapped }, i) => {
      const [cell = "", width = 0] = [cells[i], widths[i]];
      return isWrapped === true ? wrapText(cell, width) : [truncateText(cell, width)];
    });
    const height = Math.max(...parts.map((lines) => lines.length));
    return Array.from({ length: height }, (_, line) =>
      columns
        .map((column, i) =>
          layOut(column, { isTitle: row === 0, width: widths[i] ?? 0 }, parts[i]?.[line] ?? ""),
        )
        .join(" ".repeat(gap))
        .trimEnd(),
    );
  });
}

function layOut(
  { align, paint }: Column,
  { isTitle, width }: { readonly isTitle: boolean; readonly width: number },
  cell: string,
): string {
  const blanks = " ".repeat(Math.max(0, width - textWidth(cell)));
  const painted = paint === undefined || isTitle || cell === "" ? cell : paint(cell);
  return align === "right" ? blanks + painted : painted + blanks;
}

/** Takes what is too much from the columns that give way, the widest first. */
function fitWidths(
  columns: readonly Column[],
  wanted: readonly number[],
  columnsMax: number,
): readonly number[] {
  const widths = [...wanted];
  const total = wanted.reduce((sum, width) => sum + width, gap * (columns.length - 1));
  for (let over = total - columnsMax; over > 0; over -= 1) {
    let widest: number | undefined;
    columns.forEach(({ isFlexible, columnsMin = flexibleColumnsMin }, i) => {
      const width = widths[i] ?? 0;
      if (isFlexible !== true || width <= columnsMin) return;
      if (widest === undefined || width > (widths[widest] ?? 0)) widest = i;
    });
    if (widest === undefined) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
}
