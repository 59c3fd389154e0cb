import { textWidth, truncateText, wrapText } from "./text-width.js";

/** A column of a table. */
export interface Column {
  readonly title: string;
  /** Alignment of its cells; default left. */
  readonly align?: "left" | "right";
  /** Whether it is shortened with `…` if a line would be too long. */
  readonly isFlexible?: boolean;
  /** Minimum width if it is shortened, in terminal columns; default 8. */
  readonly columnsMin?: number;
  /** Whether it is wrapped into further lines instead: sentences, lists. */
  readonly isWrapped?: boolean;
  /** Colors a cell after layout. */
  readonly paint?: (cell: string) => string;
}

/** Default minimum width of a shortened column, in terminal columns. */
const flexibleColumnsMin = 8;

const gap = 2;

/**
 * Draws a table for a terminal: titles, and a line for each row, two spaces between columns.
 *
 * @param columnsMax maximum length of a line; default unlimited
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

/** Takes the excess width from the flexible columns, the widest first. */
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
