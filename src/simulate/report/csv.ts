/** Returns rows as CSV according to RFC 4180. */
export function writeCsv(rows: readonly (readonly (string | number | undefined)[])[]): string {
  return rows.map((row) => `${row.map(writeCell).join(",")}\r\n`).join("");
}

function writeCell(cell: string | number | undefined): string {
  if (cell === undefined) return "";
  if (typeof cell === "number") return String(cell);
  // Programs that open CSV files take these for formulas, and callers control the text.
  const text = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
