import { mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { requireProgram } from "./programs.js";
import type { Stage } from "./stage.js";
import { within } from "./wait.js";

/** How long one run of Helm may take, in milliseconds. */
const helmMsMax = 60_000;

/** How a run went. */
export interface HelmRun {
  readonly isOk: boolean;
  readonly output: string;
}

/** Runs a real Helm. */
export async function runHelm(stage: Stage, args: readonly string[]): Promise<HelmRun> {
  const program = stage.spawn({ name: "helm", file: await requireProgram("helm"), args });
  const exit = await within("Helm has ended", helmMsMax, program.exited);
  return { isOk: "code" in exit && exit.code === 0, output: program.output };
}

/** A chart with values in place of its own; the objects, or why there are none. */
export async function renderChart(
  stage: Stage,
  chart: {
    readonly folder: string;
    readonly namespace: string;
    readonly values: unknown;
  },
): Promise<{ readonly run: HelmRun; readonly objects: readonly unknown[] }> {
  const values = join(await mkdtemp(join(stage.folder, "values-")), "values.json");
  // Helm reads YAML, in which some characters that JSON holds as they are end a line.
  const text = JSON.stringify(chart.values).replaceAll(/[^\x20-\x7e]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
  await writeFile(values, text);
  const words = ["template", "headgate", chart.folder, "--namespace", chart.namespace];
  // One that was built from its module takes itself for a Helm of an old Kubernetes.
  words.push("--values", values, "--kube-version", "1.30.0");
  const run = await runHelm(stage, words);
  if (!run.isOk) return { run, objects: [] };
  const objects = parseAllDocuments(run.output).map((document): unknown => document.toJS());
  return { run, objects: objects.filter((one) => one !== null) };
}
