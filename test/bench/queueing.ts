import type { EstimatedWaitSettings } from "../../src/core/admission/estimated-wait.js";
import { defaultGateSettings } from "../../src/core/admission/gate.js";
import {
  type ErlangRun,
  erlangFigures,
  runErlang,
  textSampleCount,
  textStation,
  waitFigures,
} from "../simulation/erlang-run.js";
import { QueueRun, refusedCount } from "../simulation/queue-run.js";
import {
  hardCap,
  sigmoid,
  steepSigmoid,
  textOverload,
  twofold,
} from "../simulation/queue-scenarios.js";
import { mean, quantile } from "../support/station.js";
import { layOut } from "./report.js";

/** How far a figure may be from the formula's, of this many requests or more. */
const errorRatioMax = 0.03;
const judgedCountMin = 1_000_000;

/** What a run showed, and whether it is near enough to the formula. */
export interface QueueingReport {
  readonly text: string;
  readonly isNear: boolean;
}

/**
 * The request queue in simulated time: against Erlang's formula with at least that many requests,
 * then under overload, by each law that bounds the queue, and by class.
 */
export function tellQueueing(requestCount: number): QueueingReport {
  const run = runErlang(1, Math.max(2, Math.ceil(requestCount / textSampleCount)));
  const tables = [erlangTable(run), boundTable(), classTable()];
  return { text: tables.join("\n\n"), isNear: isNear(run) };
}

function erlangTable({ requestCount, whole, standardErrors }: ErlangRun): string {
  const formula = erlangFigures(textStation);
  const rows = waitFigures.map((figure) => [
    figure,
    formula[figure].toFixed(4),
    whole[figure].toFixed(4),
    percent(whole[figure] / formula[figure] - 1),
    percent(standardErrors[figure] / formula[figure]),
  ]);
  const title = `${requestCount.toLocaleString("en-US")} requests, lambda 8, c 10, mu 1`;
  return layOut([[title, "formula s", "here s", "off", "standard error"], ...rows]);
}

function isNear({ whole, requestCount }: ErlangRun): boolean {
  const formula = erlangFigures(textStation);
  const errors = waitFigures.map((figure) => Math.abs(whole[figure] / formula[figure] - 1));
  return requestCount < judgedCountMin || Math.max(...errors) <= errorRatioMax;
}

const bounds: readonly (readonly [title: string, law: EstimatedWaitSettings, hasGate: boolean])[] =
  [
    ["cap of 30 s", hardCap, false],
    ["sigmoid 28 s, 0.23/s", sigmoid, false],
    ["sigmoid 25.5 s, 0.6/s", steepSigmoid, false],
    ["sigmoid 28 s, 0.23/s, gate", sigmoid, true],
  ];

/** Who waits, in an hour after five minutes: mean, and between which nine in ten looks are. */
function boundTable(): string {
  const lambdas = [12, 15, 20, 100];
  const rows = bounds.map(([title, law, hasGate]) => [
    title,
    ...lambdas.map((lambda) => {
      const gate = hasGate ? defaultGateSettings : undefined;
      const run = new QueueRun({ ...textOverload(lambda, law), gate }, 1);
      run.span(300);
      run.forget();
      run.span(3_600);
      const counts = run.queueCounts;
      return `${mean(counts).toFixed(0)} (${quantile(counts, 0.05)}-${quantile(counts, 0.95)})`;
    }),
  ]);
  return layOut([["waiting, at c 10, mu 1", ...lambdas.map((one) => `lambda ${one}`)], ...rows]);
}

/** By class at twice the capacity, for ten minutes: refused, and how long the others waited. */
function classTable(): string {
  const rows = (["poisson", "bursty", "heavyTailed"] as const).map((arrivals) => {
    const run = new QueueRun(twofold({ arrivals }), 1);
    run.span(600);
    const cells = Object.values(run.classes).map((counts) => {
      const p99Ms = quantile(counts.waitsMs, 0.99).toFixed(0);
      return `${percent(refusedCount(counts) / counts.arrivedCount)} ${p99Ms} ms`;
    });
    return [arrivals, ...cells];
  });
  const classes = Object.keys(new QueueRun(twofold(), 1).classes);
  return layOut([["refused, p99 wait at twice the capacity", ...classes], ...rows]);
}

function percent(ratio: number): string {
  return `${(100 * ratio).toFixed(2)}%`;
}
