import { priorities } from "../../core/admission/priority.js";
import type { FinishedRun } from "./run-summary.js";
import {
  latencyText,
  metricText,
  plainCountText,
  type SimulationResult,
} from "./simulation-result.js";
import type { SvgLine, SvgPlot } from "./svg-plot.js";

/** Returns the plots of a report: all series of one run, or differences between several runs. */
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
    { ...plot("Attempts", "For each request.", "attemptsPerRequest"), format: attemptsText },
    plot("Calls to the store", "Per second, those of all replicas.", "storeCalls"),
    ...namesOf(first, "limit").flatMap((name) => [
      plot(`Limit: ${name}`, "Permits.", `${name}.limit`),
      plot(`In flight: ${name}`, "Requests that hold a permit.", `${name}.inUse`),
    ]),
  ];
}

/** Makes a line from a series. */
type DrawLine = (title: string, name: string) => SvgLine;

function runPlots(run: FinishedRun): readonly DrawnPlot[] {
  const { series } = run;
  const line: DrawLine = (title, name) => ({ title, values: series.get(name) ?? [] });
  const named = (form: RegExp): readonly SvgLine[] =>
    [...series.keys()].flatMap((name) => {
      const [, title] = form.exec(name) ?? [];
      return title === undefined ? [] : [line(title, name)];
    });
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
      title: "Refused, by cause",
      note: "Requests per second.",
      lines: named(/^refusedBy\.([^.]+)$/),
    },
    {
      title: "Refused, by class",
      note: "Requests per second.",
      lines: priorities.map((name) => line(name, `refusedOf.${name}`)),
    },
    {
      title: "Latency",
      note: "Of requests served, from the first attempt on.",
      lines: [line("p50", "p50Ms"), line("p95", "p95Ms"), line("p99", "p99Ms")],
      format: latencyText,
    },
    ...namesOf(run, "workers").flatMap((name) => servicePlots(name, line)),
    ...(run.summary.total.attemptsPerRequest > 1 ? retryPlots(line) : []),
    ...fleetPlots(line, named),
  ];
}

function retryPlots(line: DrawLine): readonly DrawnPlot[] {
  return [
    {
      title: "Retries",
      note: "Attempts per second beside requests.",
      lines: [line("attempts", "attempts"), line("requests", "offered")],
    },
    {
      title: "Amplification",
      note: "Attempts for each request.",
      lines: [line("attempts for each", "attemptsPerRequest")],
      format: attemptsText,
    },
  ];
}

function fleetPlots(
  line: DrawLine,
  named: (form: RegExp) => readonly SvgLine[],
): readonly DrawnPlot[] {
  const several = (lines: readonly SvgLine[]): readonly SvgLine[] =>
    lines.length > 1 ? lines : [];
  return [
    {
      title: "Calls to the store",
      note: "Per second, those of all replicas.",
      lines: [line("calls", "storeCalls")],
    },
    {
      title: "Decisions, by replica",
      note: "Requests that each replica of Headgate was asked about, per second.",
      lines: several(named(/^(headgate\d+)\.asked$/)),
    },
    {
      title: "Limited, by replica",
      note: "Requests denied by rate limits, per second.",
      lines: named(/^(headgate\d+)\.limited$/),
    },
    {
      title: "Attempts, by Envoy",
      note: "Per second.",
      lines: several(named(/^(envoy\d+)\.attempts$/)),
    },
  ];
}

function attemptsText(value: number): string {
  return metricText(value, "count");
}

function servicePlots(name: string, line: DrawLine): readonly DrawnPlot[] {
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

/** Returns services that have a series of that name. */
function namesOf({ series }: FinishedRun, name: string): readonly string[] {
  const ending = `.${name}`;
  return [...series.keys()]
    .filter((key) => key.endsWith(ending))
    .map((key) => key.slice(0, -ending.length));
}
