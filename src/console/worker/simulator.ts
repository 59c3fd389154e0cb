import type { PolicyText } from "../../policy/parse.js";
import { firstScenario } from "./first-scenario.js";
import {
  type CheckedJob,
  readJob,
  runJob,
  type SimulationJob,
  type SimulationReport,
} from "./simulation-job.js";

/** What a page asks its worker. */
export type SimulatorQuestion =
  | { readonly kind: "begin"; readonly policies: readonly PolicyText[] }
  | { readonly kind: "check"; readonly job: SimulationJob }
  | { readonly kind: "run"; readonly job: SimulationJob };

/** What it is answered; a run answers several times. */
export type SimulatorAnswer =
  | { readonly kind: "begun"; readonly text: string }
  | { readonly kind: "checked"; readonly checked: CheckedJob }
  | { readonly kind: "progress"; readonly ratio: number }
  | { readonly kind: "finished"; readonly report: SimulationReport }
  | { readonly kind: "failed"; readonly message: string };

addEventListener("message", ({ data }: MessageEvent<SimulatorQuestion>) => {
  answer(data).catch((error: unknown) => send({ kind: "failed", message: String(error) }));
});

async function answer(question: SimulatorQuestion): Promise<void> {
  if (question.kind === "begin") {
    return send({ kind: "begun", text: firstScenario(question.policies) });
  }
  const { job } = question;
  const { inputs, ...checked } = readJob(job);
  if (question.kind === "check" || inputs.length === 0) return send({ kind: "checked", checked });
  let shown = -1;
  const goesOn = async (ratio: number): Promise<boolean> => {
    const percent = Math.floor(100 * ratio);
    if (percent !== shown) send({ kind: "progress", ratio });
    shown = percent;
    // Whoever does not want it ends the worker.
    return true;
  };
  const report = await runJob({ inputs, ...checked }, { job, control: { goesOn } });
  send({ kind: "finished", report });
}

function send(message: SimulatorAnswer): void {
  postMessage(message);
}
