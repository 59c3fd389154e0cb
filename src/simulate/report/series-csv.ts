import type { FinishedRun } from "./run-summary.js";

/** All series of runs as CSV: a row for each second of each run. Source: RFC 4180. */
export function seriesCsv(runs: readonly FinishedRun[]): string {
  const names = [...new Set(runs.flatMap(({ series }) => [...series.keys()]))];
  const rows = runs.flatMap(({ summary, series }) => {
    const length = series.get("offered")?.length ?? 0;
    return Array.from({ length }, (_, i) => [
      quoted(summary.label),
      String(i + 1),
      ...names.map((name) => numberText(series.get(name)?.[i])),
    ]);
  });
  const head = ["run", "second", ...names.map(quoted)];
  return [head, ...rows].map((cells) => `${cells.join(",")}\r\n`).join("");
}

/** Empty where there is no number. */
function numberText(value: number | undefined): string {
  return value === undefined || Number.isNaN(value) ? "" : String(Number(value.toPrecision(9)));
}

/** In quotes where it must be, and never a formula to a program that opens it. */
function quoted(text: string): string {
  const plain = /^[=+\-@\t]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
}
