import { mean, quantile } from "../support/station.js";
import { type Mmc, meanWait, meanWaitOfWaiting, waitQuantile } from "./erlang-c.js";
import { QueueRun } from "./queue-run.js";

/** The station of the virtual-queue text. */
export const textStation: Mmc = {
  serverCount: 10,
  arrivalsPerSecond: 8,
  servedPerSecond: 1,
};

/** Requests of the text's sample, which ran for 20 minutes. */
export const textSampleCount = 9_574;

/** What is held against the formula. */
export const waitFigures = ["meanOfWaiting", "mean", "p90", "p99"] as const;

/** Waits in seconds. */
export type WaitFigures = Readonly<Record<(typeof waitFigures)[number], number>>;

/** A run in parts, each as long as the text's sample. */
export interface ErlangRun {
  readonly requestCount: number;
  /** Of all requests. */
  readonly whole: WaitFigures;
  /** Of each part. */
  readonly parts: readonly WaitFigures[];
  /** Standard error of each figure of the whole, from how its parts differ. */
  readonly standardErrors: WaitFigures;
}

/** What the formula says. */
export function erlangFigures(station: Mmc): WaitFigures {
  return {
    meanOfWaiting: meanWaitOfWaiting(station),
    mean: meanWait(station),
    p90: waitQuantile(station, 0.9),
    p99: waitQuantile(station, 0.99),
  };
}

/**
 * Runs the text's station behind a request queue without bound, first in first out.
 *
 * @param partCount parts of `textSampleCount` requests, from 2
 */
export function runErlang(seed: number, partCount: number): ErlangRun {
  const unbounded = Number.POSITIVE_INFINITY;
  const run = new QueueRun(
    {
      ...textStation,
      serviceMs: 1_000,
      arrivals: "poisson",
      classRatios: {},
      queue: { sizeMax: unbounded, waitMsMax: unbounded, order: "fifo", codel: undefined },
      estimatedWait: undefined,
      gate: undefined,
      shedAt: undefined,
    },
    seed,
  );
  const { waitsMs } = run.classes.normal;
  // From an empty station to one that has forgotten that it was empty.
  run.span(200);
  run.forget();
  const requestCount = partCount * textSampleCount;
  while (waitsMs.length < requestCount) run.span(1_000);
  const parts = Array.from({ length: partCount }, (_, i) =>
    figuresOf(waitsMs.slice(i * textSampleCount, (i + 1) * textSampleCount)),
  );
  return {
    requestCount,
    whole: figuresOf(waitsMs.slice(0, requestCount)),
    parts,
    standardErrors: mapFigures((figure) => standardError(parts.map((part) => part[figure]))),
  };
}

function figuresOf(waitsMs: readonly number[]): WaitFigures {
  const sum = waitsMs.reduce((total, waitMs) => total + waitMs, 0);
  const waitingCount = waitsMs.filter((waitMs) => waitMs > 0).length;
  return {
    meanOfWaiting: sum / waitingCount / 1_000,
    mean: sum / waitsMs.length / 1_000,
    p90: quantile(waitsMs, 0.9) / 1_000,
    p99: quantile(waitsMs, 0.99) / 1_000,
  };
}

/** Of the mean of values that are nearly independent: parts are much longer than the memory. */
function standardError(values: readonly number[]): number {
  const middle = mean(values);
  const squares = values.reduce((sum, value) => sum + (value - middle) ** 2, 0);
  return Math.sqrt(squares / (values.length - 1) / values.length);
}

function mapFigures(figureOf: (figure: (typeof waitFigures)[number]) => number): WaitFigures {
  return {
    meanOfWaiting: figureOf("meanOfWaiting"),
    mean: figureOf("mean"),
    p90: figureOf("p90"),
    p99: figureOf("p99"),
  };
}
