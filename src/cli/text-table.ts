/** A column of a table. */
export interface Column {
  readonly title: string;
  /** Where its cells stand; default left. */
  readonly align?: "left" | "right";
}

/** Draws a table for a terminal: a line of titles, and one for each row, two spaces between. */
export function drawTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
): readonly string[] {
  const titles = columns.map(({ title }) => title);
  const widths = columns.map((_, i) =>
    [titles, ...rows].reduce((width, cells) => Math.max(width, cells[i]?.length ?? 0), 0),
  );
  return [titles, ...rows].map((cells) => {
    const parts = columns.map(({ align }, i) => {
      const cell = cells[i] ?? "";
      return align === "right" ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0);
    });
    return parts.join("  ").trimEnd();
  });
}
