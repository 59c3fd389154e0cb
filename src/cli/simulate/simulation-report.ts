import type { Style } from "../../app/base/style.js";
import { objectiveMetrics } from "../../policy/scenario/objective.js";
import type { FinishedRun, RequestFigures, RunSummary } from "../../simulate/report/run-summary.js";
import {
  latencyText,
  metricText,
  ratioText,
  type SimulationResult,
} from "../../simulate/report/simulation-result.js";
import { countText, safeText } from "../terminal/quantity.js";
import { sparkline } from "../terminal/sparkline.js";
import { drawTable } from "../terminal/text-table.js";

const sparklineColumnsMax = 60;

/** Returns the report as text. */
export function renderSimulation(
  { scenario, description, runs }: SimulationResult,
  { style, columnsMax }: { readonly style: Style; readonly columnsMax: number },
): string {
  const lines = [style.bold(safeText(scenario))];
  if (description !== undefined) lines.push(safeText(description.replaceAll(/\s+/g, " ").trim()));
  const [first] = runs;
  if (first === undefined) return lines.join("\n");
  lines.push(lengthText(first.summary), "");
  lines.push(...drawTable(...comparison(runs), columnsMax), "");
  if (runs.length === 1) {
    lines.push(...drawTable(...ofNames(first.summary), columnsMax), "");
  }
  const isOne = runs.length === 1;
  const titles = runs.map(({ summary }) => safeText(summary.label));
  const widest = Math.max(...titles.map((title) => title.length));
  const most = Math.max(...runs.flatMap(({ series }) => series.get("served") ?? []));
  for (const [i, { series }] of runs.entries()) {
    const title = isOne ? "served each second" : (titles[i] ?? "").padEnd(widest);
    const line = sparkline(series.get("served") ?? [], sparklineColumnsMax, most);
    lines.push(`${style.dim(title)}  ${line}`);
  }
  if (first.summary.objectives.length > 0) lines.push("", ...verdictLines(runs, style));
  return lines.join("\n");
}

function lengthText({ seed, simulatedMs, durationMs }: RunSummary): string {
  const seconds = (ms: number): string => `${Number((ms / 1_000).toFixed(1))} s`;
  const isWhole = simulatedMs >= durationMs;
  const length = isWhole
    ? seconds(durationMs)
    : `${seconds(simulatedMs)} of ${seconds(durationMs)}`;
  return `${length} simulated, seed ${seed}`;
}

type Table = Parameters<typeof drawTable> extends [infer C, infer R, ...unknown[]] ? [C, R] : never;

/** Returns a table with a row for each figure and a column for each run. */
function comparison(runs: readonly FinishedRun[]): Table {
  const totals = runs.map(({ summary }) => summary.total);
  const causes = [...new Set(totals.flatMap((one) => Object.keys(one.refusedByCause)))];
  const row = (title: string, read: (figures: RequestFigures) => string): readonly string[] => [
    title,
    ...totals.map(read),
  ];
  const part = (title: string, read: (figures: RequestFigures) => number): readonly string[] =>
    row(title, (figures) => {
      const count = read(figures);
      return `${countText(count)}  ${ratioText(count / figures.offered)}`;
    });
  const limits = runs.map(({ series }) => limitText(series));
  return [
    [
      { title: "" },
      ...runs.map(({ summary }) => ({
        title: summary.label === "" ? "requests" : safeText(summary.label),
        align: "right" as const,
      })),
    ],
    [
      row("offered", ({ offered }) => countText(offered)),
      row("goodput", ({ goodputRatio = Number.NaN }) => ratioText(goodputRatio)),
      part("served in time", ({ served }) => served),
      part("served late", ({ late }) => late),
      part("refused", ({ refused }) => refused),
      ...causes.map((cause) =>
        part(`  ${cause}`, ({ refusedByCause }) => refusedByCause[cause] ?? 0),
      ),
      part("failed", ({ failed }) => failed),
      part("abandoned", ({ abandoned }) => abandoned),
      row("attempts each", ({ attemptsPerRequest }) => metricText(attemptsPerRequest, "count")),
      ...(["p50", "p95", "p99"] as const).map((name) =>
        row(`latency ${name}`, ({ latencyMs }) => (latencyMs ? latencyText(latencyMs[name]) : "-")),
      ),
      ...(limits.every((limit) => limit === "") ? [] : [["limit at the end", ...limits]]),
    ],
  ];
}

/** Returns the last limit of each service that has one. */
function limitText(series: FinishedRun["series"]): string {
  const limits = [...series].flatMap(([name, values]) => {
    const last = values.at(-1);
    if (!name.endsWith(".limit") || last === undefined || Number.isNaN(last)) return [];
    return [String(Math.round(last))];
  });
  return limits.join(", ");
}

/** Returns a table with a row for each class, caller and service. */
function ofNames({ byClass, byService, byCaller }: RunSummary): Table {
  const groups = [
    ["class", byClass],
    ["caller", byCaller],
    ["service", byService],
  ] as const;
  const rows = groups.flatMap(([kind, named]) =>
    Object.entries(named).map(([name, figures]) => [
      `${kind} ${safeText(name)}`,
      countText(figures.offered),
      ratioText(figures.servedRatio),
      ratioText(figures.refused / figures.offered),
      ratioText((figures.failed + figures.abandoned + figures.late) / figures.offered),
      figures.latencyMs === undefined ? "-" : latencyText(figures.latencyMs.p99),
    ]),
  );
  const titles = ["offered", "served", "refused", "failed or late", "p99"];
  return [[{ title: "" }, ...titles.map((title) => ({ title, align: "right" as const }))], rows];
}

function verdictLines(runs: readonly FinishedRun[], style: Style): readonly string[] {
  return runs.flatMap(({ summary }) => [
    ...(summary.label === "" ? [] : [safeText(summary.label)]),
    ...summary.objectives.map(({ text, metric, actual, isMet, fromMs, toMs }) => {
      const mark = isMet ? style.good("✓") : style.bad("✗");
      const found = metricText(actual, objectiveMetrics[metric].unit);
      const part = `${fromMs / 1_000} s to ${toMs / 1_000} s`;
      return `  ${mark} ${safeText(text)}: ${found}${style.dim(` (${part})`)}`;
    }),
  ]);
}
