import { signal } from "@preact/signals";
import type { RecommendationOutcome } from "../worker/recommendation-job.js";
import { SimulatorTask } from "./simulator.js";

/** The last recommendation. */
export const recommendation = new SimulatorTask<RecommendationOutcome>((answer) => {
  return answer.kind === "recommended" ? answer.outcome : undefined;
});

/** The log of the recommendation. Only a reference to the file is kept. */
export const chosenLog = signal<File | undefined>(undefined);
