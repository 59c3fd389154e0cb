import { signal } from "@preact/signals";
import type { PolicyText } from "../../policy/parse.js";
import type { SimulationJob, SimulationReport } from "../worker/simulation-job.js";
import { assetPath } from "./browser.js";
import { simulator } from "./simulator.js";

/** What became of the last job; it goes on while other views are looked at. */
type SimulationState =
  | { readonly kind: "none" }
  | { readonly kind: "running"; readonly ratio: number; readonly end: AbortController }
  | { readonly kind: "finished"; readonly job: SimulationJob; readonly report: SimulationReport }
  | { readonly kind: "failed"; readonly message: string };

/** The last simulation. */
export const simulation = signal<SimulationState>({ kind: "none" });

/** Scenarios as the reader changed them, by the name of the one that he began with. */
export const written = signal<ReadonlyMap<string, string>>(new Map());

/** The scenarios of the package, and their policies; undefined until they are loaded. */
export const packaged = signal<readonly PolicyText[] | undefined>(undefined);

/** Loads them, once. */
export async function loadPackaged(): Promise<void> {
  if (packaged.peek() !== undefined) return;
  const response = await fetch(assetPath("scenarios")).catch(() => undefined);
  const files: readonly PolicyText[] = response?.ok === true ? await response.json() : [];
  packaged.value = files;
}

/** Begins a job in a thread of its own, whose end is `cancelSimulation`. */
export async function startSimulation(job: SimulationJob): Promise<void> {
  cancelSimulation();
  const end = new AbortController();
  simulation.value = { kind: "running", ratio: 0, end };
  try {
    const answer = await simulator.ask({ kind: "run", job }, end.signal, (ratio) => {
      simulation.value = { kind: "running", ratio, end };
    });
    if (answer.kind === "finished") {
      simulation.value = { kind: "finished", job, report: answer.report };
    } else simulation.value = { kind: "none" };
  } catch (error) {
    if (end.signal.aborted) return;
    const message = error instanceof Error ? error.message : String(error);
    simulation.value = { kind: "failed", message };
  }
}

/** Ends what runs, whatever it does. */
export function cancelSimulation(): void {
  const now = simulation.peek();
  if (now.kind !== "running") return;
  simulation.value = { kind: "none" };
  now.end.abort();
}
