import type { Scenario } from "../../policy/scenario/parse-scenario.js";
import { type Variation, type VariedSetting, variedRunsMax } from "../../policy/scenario/vary.js";
import type { RunControl, SimulationParts } from "../engine/simulation.js";
import { eventMarks } from "./event-marks.js";
import { type FinishedRun, runScenario } from "./run-summary.js";
import type { SimulationResult } from "./simulation-result.js";

/** What a scenario is run with. */
export type ScenarioInput = Omit<SimulationParts, "digest">;

/** One of several runs that are compared. */
export interface VariedInput extends ScenarioInput {
  /** What was changed in it. */
  readonly varied: readonly VariedSetting[];
}

/** Each value of each with each of the others; without any, one that varies nothing. */
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

/** What a run with such settings is called: `path=value`. */
export function settingsLabel(varied: readonly VariedSetting[]): string {
  return varied.map(({ path, value }) => `${path}=${value}`).join(" ");
}

/** The files with numbers that a scenario names. */
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
 * Runs scenarios one after the other, as long as the control lets them go on.
 *
 * @param inputs at least one, which differ in what was varied
 * @param control is asked with the ratio of all that is done
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
