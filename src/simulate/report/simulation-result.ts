import type { FinishedRun, RunSummary } from "./run-summary.js";
import type { SvgMark } from "./svg-plot.js";

/** Results of a scenario, run once or with varied settings. */
export interface SimulationResult {
  readonly scenario: string;
  readonly description: string | undefined;
  readonly marks: readonly SvgMark[];
  readonly warmUpMs: number;
  /** At least one. */
  readonly runs: readonly FinishedRun[];
}

/** Output of `-o json`. Names and meanings do not change within a `version`. */
export interface SimulationJson {
  readonly version: 1;
  readonly scenario: string;
  /** Whether all objectives of all runs are met. */
  readonly isMet: boolean;
  readonly runs: readonly RunSummary[];
}

/** Returns a result for programs. */
export function simulationJson({ scenario, runs }: SimulationResult): SimulationJson {
  return { version: 1, scenario, isMet: meetsAll(runs), runs: runs.map(({ summary }) => summary) };
}

/** Reports whether all objectives are met. */
export function meetsAll(runs: readonly FinishedRun[]): boolean {
  return runs.every(({ summary }) => summary.objectives.every(({ isMet }) => isMet));
}

/** Returns the text of a metric: `95.3 %`, `1.20`, `312 ms`. */
export function metricText(value: number | undefined, unit: "ratio" | "count" | "ms"): string {
  if (value === undefined || Number.isNaN(value)) return "-";
  if (unit === "ms") return latencyText(value);
  return unit === "count" ? value.toFixed(2) : ratioText(value);
}

/** Returns a part as a percentage, with more digits near the ends: `99.97 %`. */
export function ratioText(ratio: number): string {
  if (Number.isNaN(ratio)) return "-";
  const percent = 100 * ratio;
  if (percent > 0 && percent < 0.01) return "<0.01 %";
  const isNearEnd = (percent > 95 && percent < 100) || (percent > 0 && percent < 1);
  return `${percent.toFixed(isNearEnd ? 2 : 1)} %`;
}

/** Returns milliseconds as text: `8.14 ms`, `312 ms`, `2.31 s`. */
export function latencyText(ms: number): string {
  if (ms === 0) return "0";
  if (ms < 10) return `${ms.toFixed(2)} ms`;
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(2)} s`;
}

/** Returns a count with separators between thousands. */
export function plainCountText(count: number): string {
  return count.toLocaleString("en", { maximumFractionDigits: count < 10 ? 2 : 0 });
}
