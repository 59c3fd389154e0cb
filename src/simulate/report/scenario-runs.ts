import type { Scenario } from "../../policy/scenario/parse-scenario.js";
import { type Variation, type VariedSetting, variedRunsMax } from "../../policy/scenario/vary.js";
import type { RunControl, SimulationParts } from "../engine/simulation.js";
import { eventMarks } from "./event-marks.js";
import { type FinishedRun, runScenario } from "./run-summary.js";
import type { SimulationResult } from "./simulation-result.js";

/** Inputs for a run of a scenario. */
export type ScenarioInput = Omit<SimulationParts, "digest">;

/** One of several runs that are compared. */
export interface VariedInput extends ScenarioInput {
  /** Settings changed in this run. */
  readonly varied: readonly VariedSetting[];
}

/** Combines all values of all variations; without any, returns one run that varies nothing. */
export function combineSettings(
  variations: readonly Variation[],
): readonly (readonly VariedSetting[])[] | string {
  let settings: readonly (readonly VariedSetting[])[] = [[]];
  for (const { path, values } of variations) {
    settings = settings.flatMap((one) => values.map((value) => [...one, { path, value }]));
    if (settings.length > variedRunsMax) {
      return `more than ${variedRunsMax} runs are too many to compare`;
    }
  }
  return settings;
}

/** Returns the label of a run with these settings: `path=value`. */
export function settingsLabel(varied: readonly VariedSetting[]): string {
  return varied.map(({ path, value }) => `${path}=${value}`).join(" ");
}

/** Returns the trace files that a scenario names. */
export function traceFiles({ services, callers, fleet, events }: Scenario): readonly string[] {
  const times = [
    ...services.map(({ serviceTime }) => serviceTime),
    fleet.store.latency,
    ...events.flatMap(({ store }) => (store === undefined ? [] : [store.latency])),
  ];
  const all = [...times, ...callers.map(({ rate }) => rate)];
  return [...new Set(all.flatMap((one) => (one.kind === "trace" ? [one.file] : [])))];
}

/**
 * Runs scenarios one after the other, until the control stops them.
 *
 * @param inputs at least one; they differ in the varied settings
 * @param control is asked with the total progress as a ratio
 */
export async function runScenarios(
  inputs: readonly VariedInput[],
  { digest, control }: { readonly digest: SimulationParts["digest"]; readonly control: RunControl },
): Promise<SimulationResult> {
  const runs: FinishedRun[] = [];
  for (const [i, { varied, ...input }] of inputs.entries()) {
    const goesOn = (ratio: number): Promise<boolean> => control.goesOn((i + ratio) / inputs.length);
    if (!(await goesOn(0))) break;
    const label = settingsLabel(varied);
    runs.push(await runScenario({ ...input, digest }, { label, control: { goesOn } }));
  }
  const scenario = inputs[0]?.scenario;
  return {
    scenario: scenario?.name ?? "",
    description: scenario?.description,
    marks: scenario === undefined ? [] : eventMarks(scenario),
    warmUpMs: scenario?.warmUpMs ?? 0,
    runs,
  };
}
