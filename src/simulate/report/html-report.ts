import { objectiveMetrics } from "../../policy/scenario/objective.js";
import { element, type Markup, type MarkupElement, tableOf } from "./markup.js";
import { reportPage } from "./report-page.js";
import { reportPlots } from "./report-plots.js";
import type { FinishedRun, RequestFigures, RunSummary } from "./run-summary.js";
import {
  latencyText,
  meetsAll,
  metricText,
  plainCountText,
  ratioText,
  type SimulationResult,
} from "./simulation-result.js";
import { plotFigure } from "./svg-plot.js";

const groupsTitle = "Classes, callers and services";

/** Returns a report with plots in one file, without scripts and without network resources. */
export function simulationHtml(result: SimulationResult): string {
  const { scenario } = result;
  return reportPage(
    { title: `${scenario}: simulation`, heading: scenario },
    simulationReport(result),
  );
}

/** Returns the report below its title: figures, and a plot with a table for each series. */
export function simulationReport(result: SimulationResult): readonly Markup[] {
  const { description, runs } = result;
  const [first] = runs;
  return [
    ...(description === undefined
      ? []
      : [element("p", {}, [description.replaceAll(/\s+/g, " ").trim()])]),
    ...(first === undefined ? [] : sections(result, first)),
  ];
}

function sections(result: SimulationResult, first: FinishedRun): readonly Markup[] {
  const { runs } = result;
  const isCompared = runs.length > 1;
  return [
    facts(first.summary, runs),
    ...(first.summary.objectives.length > 0 ? [heading("Objectives"), objectives(runs)] : []),
    heading("Requests"),
    comparison(runs),
    ...(isCompared ? [] : [heading(groupsTitle), groups(first.summary)]),
    ...refusals(runs),
    heading("Over time"),
    element("div", { class: "figures" }, reportPlots(result).map(plotFigure)),
  ];
}

function heading(text: string): MarkupElement {
  return element("h2", {}, [text]);
}

function facts(
  { seed, simulatedMs, durationMs }: RunSummary,
  runs: readonly FinishedRun[],
): MarkupElement {
  const isMet = meetsAll(runs);
  const hasObjectives = runs.some(({ summary }) => summary.objectives.length > 0);
  const words = isMet ? "objectives met" : "objectives missed";
  const badge = element("span", { class: `verdict ${isMet ? "good" : "bad"}` }, [words]);
  const length = simulatedMs < durationMs ? `${simulatedMs / 1_000} of ` : "";
  const text =
    `${length}${durationMs / 1_000} s simulated, seed ${seed}. ` +
    "Shaded: warm-up, which the figures leave out.";
  return element("p", {}, [
    ...(hasObjectives ? [badge, " "] : []),
    element("span", { class: "dim" }, [text]),
  ]);
}

function labelOf({ summary }: FinishedRun): string {
  return summary.label === "" ? "requests" : summary.label;
}

function objectives(runs: readonly FinishedRun[]): MarkupElement {
  const [first] = runs;
  const rows = (first?.summary.objectives ?? []).map(({ text, fromMs, toMs, metric }, i) => [
    text,
    `${fromMs / 1_000}–${toMs / 1_000} s`,
    ...runs.map(({ summary }) => {
      const verdict = summary.objectives[i];
      const mark = verdict?.isMet === true ? "✓" : "✗";
      return `${mark} ${metricText(verdict?.actual, objectiveMetrics[metric].unit)}`;
    }),
  ]);
  const titles = ["objective", "part", ...runs.map(resultOf)];
  return tableOf({ label: "Objectives", titles, rows });
}

function resultOf(run: FinishedRun): string {
  return run.summary.label === "" ? "result" : run.summary.label;
}

function comparison(runs: readonly FinishedRun[]): MarkupElement {
  const totals = runs.map(({ summary }) => summary.total);
  const row = (title: string, read: (figures: RequestFigures) => string): readonly string[] => [
    title,
    ...totals.map(read),
  ];
  const part = (title: string, read: (figures: RequestFigures) => number): readonly string[] =>
    row(title, (one) => `${plainCountText(read(one))} (${ratioText(read(one) / one.offered)})`);
  const rows = [
    row("offered", ({ offered }) => plainCountText(offered)),
    row("goodput, of what could be served", ({ goodputRatio = Number.NaN }) =>
      ratioText(goodputRatio),
    ),
    part("served in time", ({ served }) => served),
    part("served late", ({ late }) => late),
    part("refused", ({ refused }) => refused),
    part("failed", ({ failed }) => failed),
    part("abandoned", ({ abandoned }) => abandoned),
    row("attempts for each", ({ attemptsPerRequest }) => metricText(attemptsPerRequest, "count")),
    ...(["p50", "p95", "p99"] as const).map((name) =>
      row(`latency ${name}`, ({ latencyMs }) => (latencyMs ? latencyText(latencyMs[name]) : "–")),
    ),
  ];
  return tableOf({ label: "Requests", titles: ["", ...runs.map(labelOf)], rows });
}

function groups({ byClass, byCaller, byService }: RunSummary): MarkupElement {
  const rows = [
    ["class", byClass] as const,
    ["caller", byCaller] as const,
    ["service", byService] as const,
  ].flatMap(([kind, named]) =>
    Object.entries(named).map(([name, figures]) => [
      `${kind} ${name}`,
      plainCountText(figures.offered),
      ratioText(figures.servedRatio),
      ratioText(figures.refused / figures.offered),
      ratioText(figures.failed / figures.offered),
      ratioText((figures.abandoned + figures.late) / figures.offered),
      metricText(figures.attemptsPerRequest, "count"),
      figures.latencyMs === undefined ? "–" : latencyText(figures.latencyMs.p99),
    ]),
  );
  const titles = [
    "",
    "offered",
    "served",
    "refused",
    "failed",
    "late or abandoned",
    "attempts",
    "p99",
  ];
  return tableOf({ label: groupsTitle, titles, rows });
}

/** Returns tables of refusals by cause and class, for each run. */
function refusals(runs: readonly FinishedRun[]): readonly Markup[] {
  return runs.flatMap((run) => {
    const { summary } = run;
    const causes = Object.keys(summary.total.refusedByCause);
    if (causes.length === 0) return [];
    const classes = Object.entries(summary.byClass);
    const rows = causes.map((cause) => [
      cause,
      plainCountText(summary.total.refusedByCause[cause] ?? 0),
      ...classes.map(([, figures]) => plainCountText(figures.refusedByCause[cause] ?? 0)),
    ]);
    const what = summary.label === "" ? "" : `: ${summary.label}`;
    const label = `Refused, by cause${what}`;
    const titles = ["cause", "all", ...classes.map(([name]) => name)];
    return [heading(label), tableOf({ label, titles, rows })];
  });
}
