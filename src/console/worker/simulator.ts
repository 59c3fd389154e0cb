import type { PolicyText } from "../../policy/parse.js";
import { firstScenario } from "./first-scenario.js";
import {
  type RecommendationJob,
  type RecommendationOutcome,
  recommendFor,
} from "./recommendation-job.js";
import {
  type CheckedJob,
  readJob,
  runJob,
  type SimulationJob,
  type SimulationReport,
} from "./simulation-job.js";

/** Requests of a page to its worker. */
export type SimulatorQuestion =
  | { readonly kind: "begin"; readonly policies: readonly PolicyText[] }
  | { readonly kind: "check"; readonly job: SimulationJob }
  | { readonly kind: "run"; readonly job: SimulationJob }
  | { readonly kind: "recommend"; readonly job: RecommendationJob };

/** Answers to requests. Long tasks send several. */
export type SimulatorAnswer =
  | { readonly kind: "begun"; readonly text: string }
  | { readonly kind: "checked"; readonly checked: CheckedJob }
  /** @property pass number of the current reading of a log, from 1 */
  | { readonly kind: "progress"; readonly ratio: number; readonly pass?: number }
  | { readonly kind: "finished"; readonly report: SimulationReport }
  | { readonly kind: "recommended"; readonly outcome: RecommendationOutcome }
  | { readonly kind: "failed"; readonly message: string };

addEventListener("message", ({ data }: MessageEvent<SimulatorQuestion>) => {
  answer(data).catch((error: unknown) => send({ kind: "failed", message: String(error) }));
});

async function answer(question: SimulatorQuestion): Promise<void> {
  if (question.kind === "begin") {
    return send({ kind: "begun", text: firstScenario(question.policies) });
  }
  const progress = new Progress();
  if (question.kind === "recommend") {
    const outcome = await recommendFor(question.job, (ratio, pass) => progress.show(ratio, pass));
    return send({ kind: "recommended", outcome });
  }
  const { job } = question;
  const { inputs, ...checked } = readJob(job);
  if (question.kind === "check" || inputs.length === 0) return send({ kind: "checked", checked });
  const goesOn = async (ratio: number): Promise<boolean> => {
    progress.show(ratio);
    // To cancel it, the page terminates the worker.
    return true;
  };
  const report = await runJob({ inputs, ...checked }, { job, control: { goesOn } });
  send({ kind: "finished", report });
}

/** Reports each percent once. */
class Progress {
  #shown = "";

  show(ratio: number, pass?: number): void {
    const shown = `${pass} ${Math.floor(100 * ratio)}`;
    if (shown === this.#shown) return;
    this.#shown = shown;
    send({ kind: "progress", ratio, ...(pass === undefined ? {} : { pass }) });
  }
}

function send(message: SimulatorAnswer): void {
  postMessage(message);
}
