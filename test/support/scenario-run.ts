import { sha256 } from "../../src/app/base/sha256.js";
import { readScenario } from "../../src/cli/simulate/scenario-input.js";
import type { Output } from "../../src/cli/terminal/context.js";
import { type FinishedRun, runScenario } from "../../src/simulate/report/run-summary.js";
import type { ScenarioInput } from "../../src/simulate/report/scenario-runs.js";

/** What is wrong with a scenario fails its test. */
export const noOutput: Output = {
  out: () => {},
  err: (text: string): void => {
    throw new Error(text);
  },
};

/** Goes on to the end. */
export const endless = { goesOn: async () => true };

/** A scenario with a policy. */
export function scenarioInput(text: string, policy?: string): ScenarioInput {
  const scenario = { file: "scenario.yaml", text };
  const policies = policy === undefined ? [] : [{ file: "policy.yaml", text: policy }];
  return readScenario({ scenario, policies }, noOutput);
}

/** Runs a scenario to its end. */
export function runInput(input: ScenarioInput): Promise<FinishedRun> {
  return runScenario({ ...input, digest: sha256 }, { label: "", control: endless });
}
