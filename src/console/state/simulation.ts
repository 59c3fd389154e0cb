import { signal } from "@preact/signals";
import type { PolicyText } from "../../policy/parse.js";
import type { SimulationReport } from "../worker/simulation-job.js";
import { assetPath } from "./browser.js";
import { SimulatorTask } from "./simulator.js";

/** The last simulation. */
export const simulation = new SimulatorTask<SimulationReport>((answer) => {
  return answer.kind === "finished" ? answer.report : undefined;
});

/** Scenarios edited by the user, by the name of the original. */
export const written = signal<ReadonlyMap<string, string>>(new Map());

/** Scenarios of the package and their policies; undefined until they are loaded. */
export const packaged = signal<readonly PolicyText[] | undefined>(undefined);

/** Loads the scenarios of the package once. */
export async function loadPackaged(): Promise<void> {
  if (packaged.peek() !== undefined) return;
  const response = await fetch(assetPath("scenarios")).catch(() => undefined);
  const files: readonly PolicyText[] = response?.ok === true ? await response.json() : [];
  packaged.value = files;
}
