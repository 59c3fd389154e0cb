import type { FinishedRun } from "./run-summary.js";
import { latencyText, plainCountText, type SimulationResult } from "./simulation-result.js";
import type { SvgLine, SvgPlot } from "./svg-plot.js";

/** The plots of a report: of one run all that was seen, of several runs what they differ in. */
export function reportPlots(result: SimulationResult): readonly SvgPlot[] {
  const [first, ...others] = result.runs;
  if (first === undefined) return [];
  const drawn = others.length > 0 ? comparedPlots(result.runs, first) : runPlots(first);
  const { marks, warmUpMs } = result;
  return drawn.flatMap(({ lines, format = plainCountText, ...plot }) => {
    const shown = lines.filter(({ values }) => values.some((value) => value > 0));
    return shown.length === 0 ? [] : [{ ...plot, lines: shown, format, marks, warmUpMs }];
  });
}

type DrawnPlot = Pick<SvgPlot, "title" | "note" | "lines"> & Partial<Pick<SvgPlot, "format">>;

function comparedPlots(runs: readonly FinishedRun[], first: FinishedRun): readonly DrawnPlot[] {
  const plot = (title: string, note: string, name: string): DrawnPlot => ({
    title,
    note,
    lines: runs.map(({ summary, series }) => ({
      title: summary.label,
      values: series.get(name) ?? [],
    })),
  });
  return [
    plot("Goodput", "Requests served in time, per second.", "served"),
    plot("Refused", "Requests refused, per second.", "refused"),
    { ...plot("Latency p99", "Of requests served.", "p99Ms"), format: latencyText },
    plot("Attempts", "Attempts per second.", "attempts"),
    ...namesOf(first, "limit").flatMap((name) => [
      plot(`Limit: ${name}`, "Permits.", `${name}.limit`),
      plot(`In flight: ${name}`, "Requests that hold a permit.", `${name}.inUse`),
    ]),
  ];
}

function runPlots(run: FinishedRun): readonly DrawnPlot[] {
  const { series, summary } = run;
  const line = (title: string, name: string): SvgLine => ({
    title,
    values: series.get(name) ?? [],
  });
  const replicas = [...series.keys()].filter((name) => /^headgate\d+\.limited$/.test(name));
  const retries = [line("attempts", "attempts"), line("requests", "offered")];
  return [
    {
      title: "Requests",
      note: "Per second, by what became of them.",
      lines: [
        line("offered", "offered"),
        line("served in time", "served"),
        line("refused", "refused"),
        line("failed", "failed"),
        line("abandoned", "abandoned"),
        line("served late", "late"),
      ],
    },
    {
      title: "Latency",
      note: "Of requests served, from the first attempt on.",
      lines: [line("p50", "p50Ms"), line("p95", "p95Ms"), line("p99", "p99Ms")],
      format: latencyText,
    },
    ...namesOf(run, "workers").flatMap((name) => servicePlots(name, line)),
    {
      title: "Retries",
      note: "Attempts per second beside requests.",
      lines: summary.total.attemptsPerRequest > 1 ? retries : [],
    },
    {
      title: "Calls to the store",
      note: "Per second, those of all replicas.",
      lines: [line("calls", "storeCalls")],
    },
    {
      title: "Limited, by replica",
      note: "Requests denied by rate limits, per second.",
      lines: replicas.map((name) => line(name.replace(".limited", ""), name)),
    },
  ];
}

function servicePlots(
  name: string,
  line: (title: string, name: string) => SvgLine,
): readonly DrawnPlot[] {
  return [
    {
      title: `In flight and limit: ${name}`,
      note: "Permits, their limit, and workers.",
      lines: [
        line("limit", `${name}.limit`),
        line("hold a permit", `${name}.inUse`),
        line("busy workers", `${name}.busy`),
        line("workers", `${name}.workers`),
      ],
    },
    {
      title: `Queues: ${name}`,
      note: "Requests that wait.",
      lines: [line("at the service", `${name}.queue`), line("at Headgate", `${name}.waiting`)],
    },
    {
      title: `Load: ${name}`,
      note: "Requests per second that reach the service.",
      lines: [
        line("reach the service", `${name}.arrived`),
        line("offered and possible", `${name}.possible`),
      ],
    },
  ];
}

/** Services that have a series of that name. */
function namesOf({ series }: FinishedRun, name: string): readonly string[] {
  const ending = `.${name}`;
  return [...series.keys()]
    .filter((key) => key.endsWith(ending))
    .map((key) => key.slice(0, -ending.length));
}
