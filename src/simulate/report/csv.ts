/** Rows as CSV, as RFC 4180 has it. */
export function writeCsv(rows: readonly (readonly (string | number | undefined)[])[]): string {
  return rows.map((row) => `${row.map(writeCell).join(",")}\r\n`).join("");
}

function writeCell(cell: string | number | undefined): string {
  if (cell === undefined) return "";
  if (typeof cell === "number") return String(cell);
  // What opens such files takes these for formulas, and the text is a caller's.
  const text = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
