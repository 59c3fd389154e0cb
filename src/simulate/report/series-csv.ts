import { writeCsv } from "./csv.js";
import type { FinishedRun } from "./run-summary.js";

/** Returns all series of runs as CSV, with a row for each second of each run. */
export function seriesCsv(runs: readonly FinishedRun[]): string {
  const names = [...new Set(runs.flatMap(({ series }) => [...series.keys()]))];
  const rows = runs.flatMap(({ summary, series }) => {
    const length = series.get("offered")?.length ?? 0;
    return Array.from({ length }, (_, i) => [
      summary.label,
      i + 1,
      ...names.map((name) => shortened(series.get(name)?.[i])),
    ]);
  });
  return writeCsv([["run", "second", ...names], ...rows]);
}

/** Undefined if there is no number. */
function shortened(value: number | undefined): number | undefined {
  return value === undefined || Number.isNaN(value) ? undefined : Number(value.toPrecision(9));
}
