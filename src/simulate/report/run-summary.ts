import { priorities } from "../../core/admission/priority.js";
import { assert } from "../../core/base/errors.js";
import {
  meetsObjective,
  type Objective,
  type ObjectiveMetric,
} from "../../policy/scenario/objective.js";
import type { Scenario, ScenarioObjective } from "../../policy/scenario/parse-scenario.js";
import type { RequestTally } from "../engine/request-tally.js";
import type { WindowRecord } from "../engine/run-record.js";
import type { SeriesColumns } from "../engine/series.js";
import { type RunControl, Simulation, type SimulationParts } from "../engine/simulation.js";

/** Outcomes of the requests that were offered in one part of a run. */
export interface RequestFigures {
  readonly offered: number;
  /** Served before their deadlines. */
  readonly served: number;
  /** Served after their deadlines. */
  readonly late: number;
  readonly refused: number;
  readonly refusedByCause: Readonly<Record<string, number>>;
  readonly failed: number;
  readonly abandoned: number;
  /** Requests without an outcome when the run ended. */
  readonly open: number;
  readonly attempts: number;
  readonly servedRatio: number;
  /** Served part of those that the workers could have served; undefined for classes and callers. */
  readonly goodputRatio: number | undefined;
  readonly attemptsPerRequest: number;
  /** Of served requests, from the first attempt on; undefined if there are none. */
  readonly latencyMs:
    | { readonly mean: number; readonly p50: number; readonly p95: number; readonly p99: number }
    | undefined;
}

/** Figures of requests by the name of their class, service or caller. */
type NamedFigures = Readonly<Record<string, RequestFigures>>;

/** An objective and its result. */
export interface ObjectiveVerdict {
  readonly text: string;
  readonly metric: ObjectiveMetric;
  readonly fromMs: number;
  readonly toMs: number;
  /** Undefined: there was nothing to measure. */
  readonly actual: number | undefined;
  readonly isMet: boolean;
}

/** Results of one run. */
export interface RunSummary {
  /** Varied settings, as `path=value`; empty for a run of the unchanged scenario. */
  readonly label: string;
  readonly seed: number;
  /** Simulated part of the duration. */
  readonly simulatedMs: number;
  readonly durationMs: number;
  readonly total: RequestFigures;
  readonly byClass: NamedFigures;
  readonly byService: NamedFigures;
  readonly byCaller: NamedFigures;
  readonly objectives: readonly ObjectiveVerdict[];
}

/** Results of a run, and its series by second. */
export interface FinishedRun {
  readonly summary: RunSummary;
  readonly series: SeriesColumns;
}

/** Runs a scenario to its end, or until the control stops it. */
export async function runScenario(
  parts: SimulationParts,
  { label, control }: { readonly label: string; readonly control: RunControl },
): Promise<FinishedRun> {
  const { scenario } = parts;
  const { objectives, warmUpMs, durationMs } = scenario;
  const windows = [{ fromMs: warmUpMs, toMs: durationMs }, ...objectives];
  const simulation = new Simulation(parts, windows);
  await simulation.run(control);
  const [whole, ...others] = simulation.record.windows;
  const measure = new Measure(scenario, simulation);
  assert(whole !== undefined, "the whole run is the first window");
  const verdicts = others.flatMap((window, i) => {
    const objective = objectives[i];
    return objective === undefined ? [] : [verdictOf(objective, measure, window)];
  });
  return {
    summary: {
      label,
      seed: scenario.seed,
      simulatedMs: Math.min(durationMs, simulation.nowMs),
      durationMs,
      ...figuresOf(scenario, measure, whole),
      objectives: verdicts,
    },
    series: simulation.series.columns,
  };
}

type Whose = Objective["of"];

/** Computes the figures of a run. */
class Measure {
  readonly #serviceOf: ReadonlyMap<string, string>;
  readonly #simulation: Simulation;

  constructor({ callers }: Scenario, simulation: Simulation) {
    this.#simulation = simulation;
    this.#serviceOf = new Map(callers.map(({ name, service }) => [name, service]));
  }

  figures(window: WindowRecord, of: Whose): RequestFigures {
    const tally = this.#tally(window, of);
    const { offeredCount: offered, servedCount: served, attemptCount: attempts } = tally;
    const isPossible = of === undefined || of.kind === "service";
    const possible = isPossible ? this.#simulation.possible(window, of?.name) : undefined;
    return {
      offered,
      served,
      late: tally.lateCount,
      refused: tally.refusedCount,
      refusedByCause: Object.fromEntries(tally.refusedByCause),
      failed: tally.failedCount,
      abandoned: tally.abandonedCount,
      open: tally.openCount,
      attempts,
      servedRatio: served / offered,
      goodputRatio: possible === undefined ? undefined : served / possible,
      attemptsPerRequest: attempts / offered,
      latencyMs: latencyOf(tally),
    };
  }

  #tally(window: WindowRecord, of: Whose): RequestTally {
    return window.sum(({ caller, priority }) => {
      if (of === undefined) return true;
      if (of.kind === "class") return priority === of.name;
      return of.kind === "caller" ? caller === of.name : this.#serviceOf.get(caller) === of.name;
    });
  }
}

function figuresOf(
  { services, callers }: Scenario,
  measure: Measure,
  whole: WindowRecord,
): Pick<RunSummary, "total" | "byClass" | "byService" | "byCaller"> {
  const named = (kind: NonNullable<Whose>["kind"], names: readonly string[]): NamedFigures => {
    const each = names.map((name) => [name, measure.figures(whole, { kind, name })] as const);
    return Object.fromEntries(each.filter(([, { offered }]) => offered > 0));
  };
  return {
    total: measure.figures(whole, undefined),
    byClass: named("class", priorities),
    byService: named(
      "service",
      services.map(({ name }) => name),
    ),
    byCaller: named(
      "caller",
      callers.map(({ name }) => name),
    ),
  };
}

function verdictOf(
  objective: ScenarioObjective,
  measure: Measure,
  window: WindowRecord,
): ObjectiveVerdict {
  const { text, fromMs, toMs, metric, of } = objective;
  const actual = readMetric(metric, measure.figures(window, of));
  return { text, metric, fromMs, toMs, actual, isMet: meetsObjective(objective, actual) };
}

function readMetric(metric: ObjectiveMetric, figures: RequestFigures): number | undefined {
  const { offered, latencyMs } = figures;
  switch (metric) {
    case "goodput":
      return figures.goodputRatio;
    case "attempts":
      return figures.attemptsPerRequest;
    case "mean":
    case "p50":
    case "p95":
    case "p99":
      return latencyMs?.[metric];
    case "served":
    case "refused":
    case "failed":
    case "abandoned":
    case "late":
      return figures[metric] / offered;
  }
}

function latencyOf({ latencies }: RequestTally): RequestFigures["latencyMs"] {
  const { mean } = latencies;
  if (mean === undefined) return undefined;
  const at = (part: number): number => latencies.quantile(part) ?? mean;
  return { mean, p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}
