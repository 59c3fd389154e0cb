import { drawTable } from "../terminal/text-table.js";

/** Maximum number of rows of a section in the text; JSON has all. */
export const sectionRowsMax = 50;

/**
 * Returns a section of a policy as a table; empty if it has no rows.
 *
 * @param columns the field of each title
 */
export function renderSection<Name extends string>(
  title: string,
  rows: readonly Readonly<Record<Name, string>>[],
  columns: Readonly<Record<string, Name>>,
): string {
  if (rows.length === 0) return "";
  const shown = rows.slice(0, sectionRowsMax);
  const table = drawTable(
    Object.keys(columns).map((name) => ({ title: name })),
    shown.map((row) => Object.values(columns).map((name) => row[name])),
  );
  const moreCount = rows.length - shown.length;
  const more = moreCount > 0 ? [`  and ${moreCount} more`] : [];
  return [title, ...table.map((line) => `  ${line}`), ...more].join("\n");
}
