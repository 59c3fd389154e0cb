import {
  type CapacityChange,
  LawRun,
  type LawScenario,
  type LawSpan,
} from "../simulation/law-run.js";
import {
  halved,
  type LearningLaw,
  lawOf,
  learningLaws,
  overload,
} from "../simulation/law-scenarios.js";
import { layOut } from "./report.js";

/** One row of the table: a scenario, and which part of it is looked at. */
interface LawCase {
  readonly title: string;
  readonly scenario: (law: LearningLaw) => LawScenario;
  readonly skipMs: number;
  readonly lookMs: number;
}

const minuteMs = 60_000;

const cases: readonly LawCase[] = [
  { title: "from 1", scenario: (law) => from(law, 1), skipMs: 30_000, lookMs: minuteMs },
  { title: "from 1,000", scenario: (law) => from(law, 1_000), skipMs: 30_000, lookMs: minuteMs },
  {
    title: "work goes on",
    scenario: (law) => overload(lawOf(law, { initial: 1_000 }), { afterLeaving: "goesOn" }),
    skipMs: minuteMs,
    lookMs: minuteMs,
  },
  ...changed("half gone", halved("servers", { fromMs: minuteMs, toMs: 3 * minuteMs })),
  ...changed("twice as slow", halved("service", { fromMs: minuteMs, toMs: 3 * minuteMs })),
  {
    title: "bursts",
    scenario: (law) => overload(lawOf(law), { arrivals: "bursty" }),
    skipMs: minuteMs,
    lookMs: minuteMs,
  },
  {
    title: "300 servers",
    scenario: (law) => overload(lawOf(law, { initial: 1_000 }), { serverCount: 300 }),
    skipMs: minuteMs,
    lookMs: 20_000,
  },
  {
    title: "half an hour on",
    scenario: (law) => overload(lawOf(law, { initial: 20 })),
    skipMs: 30 * minuteMs,
    lookMs: minuteMs,
  },
];

/**
 * Every learning law in every scenario over seeds from 1, as a table: the least goodput of any
 * seed as a share of what the servers could do, the largest p99 of the served, and the share of
 * the admitted who were too late.
 */
export function tellLaws(seedCount: number): string {
  const seeds = Array.from({ length: seedCount }, (_, i) => i + 1);
  const rows = cases.map((one) => [
    one.title,
    ...learningLaws.map((law) => cellOf(seeds.map((seed) => look(one, law, seed)))),
  ]);
  return layOut([["goodput, p99 of the served, late", ...learningLaws], ...rows]);
}

function from(law: LearningLaw, initial: number): LawScenario {
  return overload(lawOf(law, { initial }));
}

function changed(title: string, changes: readonly CapacityChange[]): readonly LawCase[] {
  const scenario = (law: LearningLaw): LawScenario => overload(lawOf(law), { changes });
  return [
    { title: `${title}, 5 s on`, scenario, skipMs: minuteMs + 5_000, lookMs: 5_000 },
    { title: `${title}, 15 s on`, scenario, skipMs: minuteMs + 15_000, lookMs: 45_000 },
    { title: "and back, 15 s on", scenario, skipMs: 3 * minuteMs + 15_000, lookMs: 45_000 },
  ];
}

function look({ scenario, skipMs, lookMs }: LawCase, law: LearningLaw, seed: number): LawSpan {
  const run = new LawRun(scenario(law), seed);
  run.span(skipMs);
  return run.span(lookMs);
}

function cellOf(spans: readonly LawSpan[]): string {
  const goodput = Math.min(...spans.map(({ goodputRatio }) => goodputRatio));
  const p99Ms = Math.max(...spans.map((span) => span.p99Ms));
  const lateCount = spans.reduce((sum, span) => sum + span.lateCount, 0);
  const servedCount = spans.reduce((sum, span) => sum + span.servedCount, 0);
  const lateRatio = lateCount / Math.max(1, lateCount + servedCount);
  const p99Text = Number.isNaN(p99Ms) ? "-" : `${Math.round(p99Ms)} ms`;
  return `${percent(goodput)} ${p99Text} ${percent(lateRatio)}`;
}

function percent(ratio: number): string {
  return `${Math.round(100 * ratio)}%`;
}
