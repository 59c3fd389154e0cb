import { ratesOver } from "./load-summary.js";
import type { LoadAnswer } from "./open-loop-load.js";
import { type PlotPanel, type PlotSeries, plotSvg } from "./svg-plot.js";

type Points = readonly (readonly [number, number])[];

/** What is drawn of an overload. */
export interface OverloadPicture {
  readonly title: string;
  readonly durationMs: number;
  /** When half of the workers went; undefined: never. */
  readonly halvedMs: number | undefined;
  readonly workerCount: number;
  readonly answers: readonly LoadAnswer[];
  /** Requests that the upstream held, by seconds. */
  readonly inFlight: Points;
  /** Permits, by seconds; none where nobody tells. */
  readonly limits: Points;
  readonly capacityPerSecond: number;
}

const stepMs = 250;

const classColors: Readonly<Record<string, string>> = {
  critical: "#b3261e",
  high: "#c77700",
  normal: "#1f5fa8",
  low: "#777",
};

/** Goodput and refusals, goodput by class, limit and in flight, and latency, over time. */
export function drawOverload(run: OverloadPicture): string {
  return plotSvg(run.title, [
    ratesPanel(run),
    classesPanel(run),
    heldPanel(run),
    latencyPanel(run),
  ]);
}

function isServed({ status }: LoadAnswer): boolean {
  return status >= 200 && status < 400;
}

function ratesPanel(run: OverloadPicture): PlotPanel {
  const { answers, capacityPerSecond } = run;
  const span = { stepMs, untilMs: run.durationMs };
  return {
    title: "requests a second",
    xLabel: "seconds",
    yLabel: "a second",
    series: [
      bound(run, "capacity", capacityPerSecond),
      { name: "served in time", color: "#2a7f3f", points: ratesOver(answers, span, isServed) },
      {
        name: "refused",
        color: "#c77700",
        points: ratesOver(answers, span, ({ status }) => status >= 400),
      },
      {
        name: "no answer in time",
        color: "#b3261e",
        points: ratesOver(answers, span, ({ status }) => status === 0),
      },
    ],
  };
}

function classesPanel({ answers, durationMs }: OverloadPicture): PlotPanel {
  const names = [...new Set(answers.map(({ name }) => name))];
  const span = { stepMs: 2 * stepMs, untilMs: durationMs };
  return {
    title: "served in time, by class",
    xLabel: "seconds",
    yLabel: "a second",
    series: names.map((name): PlotSeries => {
      const points = ratesOver(answers, span, (one) => one.name === name && isServed(one));
      return { name, color: classColors[name] ?? "#2a7f3f", points };
    }),
  };
}

function heldPanel(run: OverloadPicture): PlotPanel {
  return {
    title: "requests at the upstream (workers and queue), and the limit",
    xLabel: "seconds",
    yLabel: "requests",
    series: [
      bound(run, "workers", run.workerCount),
      { name: "in flight", color: "#1f5fa8", points: run.inFlight },
      { name: "limit", color: "#b3261e", points: run.limits },
    ].filter(({ points }) => points.length > 0),
  };
}

function latencyPanel({ answers, durationMs }: OverloadPicture): PlotPanel {
  const binMs = 2 * stepMs;
  const bins: number[][] = Array.from({ length: Math.ceil(durationMs / binMs) }, () => []);
  for (const one of answers.filter(isServed))
    bins[Math.floor(one.atMs / binMs)]?.push(one.latencyMs);
  const quantiles = (ratio: number): Points =>
    bins.flatMap((values, i) => {
      const sorted = values.toSorted((a, b) => a - b);
      const value = sorted[Math.min(sorted.length - 1, Math.floor(ratio * sorted.length))];
      return value === undefined ? [] : [[((i + 0.5) * binMs) / 1_000, value] as const];
    });
  return {
    title: "latency of who was served",
    xLabel: "seconds",
    yLabel: "ms",
    series: [
      { name: "half", color: "#1f5fa8", points: quantiles(0.5) },
      { name: "95 in 100", color: "#b3261e", points: quantiles(0.95) },
    ],
  };
}

/** A number that is there from the beginning, and half of it once half of the workers are gone. */
function bound({ durationMs, halvedMs }: OverloadPicture, name: string, value: number): PlotSeries {
  const end = durationMs / 1_000;
  const changed = (halvedMs ?? durationMs) / 1_000;
  const points: Points =
    halvedMs === undefined
      ? [
          [0, value],
          [end, value],
        ]
      : [
          [0, value],
          [changed, value],
          [changed, value / 2],
          [end, value / 2],
        ];
  return { name, color: "#888", isBound: true, points };
}
