import type { Command } from "commander";
import { exitCodes } from "../../app/base/failure.js";
import { sha256 } from "../../app/base/sha256.js";
import { createStyle, isColorWanted } from "../../app/base/style.js";
import { keepNewObjectsYoung } from "../../app/base/v8-flags.js";
import { systemClock } from "../../host/clock.js";
import { visibleText } from "../../policy/problems/problem.js";
import {
  parseVariation,
  type ScenarioTexts,
  type Variation,
  varyTexts,
} from "../../policy/scenario/vary.js";
import type { RunControl } from "../../simulate/engine/simulation.js";
import { simulationHtml } from "../../simulate/report/html-report.js";
import {
  combineSettings,
  runScenarios,
  type VariedInput,
} from "../../simulate/report/scenario-runs.js";
import { seriesCsv } from "../../simulate/report/series-csv.js";
import {
  meetsAll,
  type SimulationResult,
  simulationJson,
} from "../../simulate/report/simulation-result.js";
import { collect } from "../input/collect.js";
import { reportFormatOption } from "../input/report-format.js";
import { checkWritable, writeWholeFile } from "../input/whole-file.js";
import { usageFailure } from "../terminal/command-failure.js";
import type { CommandContext, Output } from "../terminal/context.js";
import { addHelpTexts } from "../terminal/help-texts.js";
import { drawTable } from "../terminal/text-table.js";
import {
  packagedScenarios,
  readScenario,
  readScenarioTexts,
  scenarioPath,
} from "./scenario-input.js";
import { renderSimulation } from "./simulation-report.js";

interface SimulateOptions {
  readonly list?: true;
  readonly seed?: string;
  readonly vary?: readonly string[];
  readonly csv?: string;
  readonly html?: string;
  readonly output: "table" | "json";
}

/** Adds `headgate simulate`: effects of a policy on services and callers, in simulated time. */
export function addSimulate(program: Command, context: CommandContext): void {
  const command = program
    .command("simulate")
    .description("simulate services, callers and failures with a policy, in virtual time")
    .argument("[SCENARIO]", "a scenario file, or the name of one of the package")
    .option("--list", "list the scenarios of the package")
    .option("--seed <NUMBER>", "use this seed instead of the scenario's")
    .option(
      "--vary <PATH=VALUES>",
      "compare values of a setting: law=vegas,gradient or maxInFlight=10..200; repeatable",
      collect,
    )
    .option("--csv <FILE>", "write all series, one row per second")
    .option("--html <FILE>", "write a report with plots, in one file")
    .addOption(reportFormatOption(["table", "json"]));
  addHelpTexts(command, {
    examples: `
  headgate simulate --list
  headgate simulate retry-storm
  headgate simulate scenario.yaml --html report.html
  headgate simulate scenario.yaml --vary admission.maxInFlight=10..200
  headgate simulate retry-storm --vary callers.web.retries.budget=0.1,0.5 -o json`,
    notes:
      "\nA scenario names services, callers, events and objectives, and the policy that protects " +
      "them. The\npolicy is read and decided as `headgate serve` does; only time is simulated. " +
      "The same seed gives\nthe same result. --vary takes the end of a path in the scenario or " +
      "the policy, with list items by\ntheir names. Ctrl-C prints what there is so far, and " +
      "exits with 1.",
    exitCodes:
      "Exit codes: 0 all objectives met, 1 a file cannot be read or written, 2 usage, " +
      "3 invalid scenario or\npolicy, 4 an objective is not met.",
  }).action(async (named: string | undefined, options: SimulateOptions) => {
    context.exitWith(await simulate(named, options, context));
  });
}

async function simulate(
  named: string | undefined,
  options: SimulateOptions,
  context: CommandContext,
): Promise<number> {
  if (options.list === true) return listScenarios(context);
  if (named === undefined) throw usageFailure("name a scenario, or use --list");
  const seed = readSeed(options.seed);
  const settings = combineSettings((options.vary ?? []).map(readVariation));
  if (typeof settings === "string") throw usageFailure(`--vary: ${settings}`);
  const texts = await readScenarioTexts(scenarioPath(named), context.output);
  const inputs = settings.map((varied) => readVaried(texts, { varied, seed }, context.output));
  for (const path of [options.csv, options.html]) if (path !== undefined) await checkWritable(path);
  keepNewObjectsYoung();
  const control = new ScreenControl(context);
  const run = runScenarios(inputs, { digest: sha256, control });
  const result = await run.finally(() => control.close());
  await writeFiles(result, options);
  print(result, options, context);
  // Objectives apply only to complete runs.
  if (control.isEnded) return exitCodes.failure;
  return meetsAll(result.runs) ? exitCodes.ok : exitCodes.stale;
}

function listScenarios({ output, terminal }: CommandContext): number {
  const rows = packagedScenarios().map(({ name, path }) => [name, visibleText(path)]);
  const columns = [{ title: "scenario" }, { title: "file" }];
  output.out(drawTable(columns, rows, terminal.columns()).join("\n"));
  return exitCodes.ok;
}

function readSeed(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,10}$/.test(text) && Number(text) < 2 ** 32) return Number(text);
  throw usageFailure(`--seed must be a whole number from 0 to ${2 ** 32 - 1}`);
}

function readVariation(text: string): Variation {
  const read = parseVariation(text);
  if (typeof read === "string") throw usageFailure(`--vary: ${read}`);
  return read;
}

function readVaried(
  texts: ScenarioTexts,
  { varied, seed }: Pick<VariedInput, "varied"> & { readonly seed: number | undefined },
  output: Output,
): VariedInput {
  const changed = varyTexts(texts, varied);
  if (typeof changed === "string") throw usageFailure(`--vary: ${changed}`);
  const { scenario, ...input } = readScenario(changed, output);
  return { varied, ...input, scenario: seed === undefined ? scenario : { ...scenario, seed } };
}

async function writeFiles(result: SimulationResult, { csv, html }: SimulateOptions): Promise<void> {
  if (csv !== undefined) await writeWholeFile(csv, seriesCsv(result.runs));
  if (html !== undefined) await writeWholeFile(html, simulationHtml(result));
}

function print(
  result: SimulationResult,
  { output: format }: SimulateOptions,
  { output, terminal, env }: CommandContext,
): void {
  if (format === "json") output.out(JSON.stringify(simulationJson(result), undefined, 2));
  else {
    const style = createStyle(isColorWanted(env, terminal.isScreen));
    const columnsMax = terminal.columns() ?? Number.POSITIVE_INFINITY;
    output.out(renderSimulation(result, { style, columnsMax }));
  }
}

/** Shows the progress, and stops the runs if the user ends them. */
class ScreenControl implements RunControl {
  readonly #isShown: boolean;
  readonly #close: () => void;
  #shown = "";
  isEnded = false;

  constructor({ terminal }: CommandContext) {
    this.#isShown = process.stderr.isTTY === true;
    this.#close = terminal.onEnd(() => {
      this.isEnded = true;
    });
  }

  async goesOn(ratio: number): Promise<boolean> {
    this.#show(`simulating ${Math.floor(100 * ratio)} %`);
    await new Promise<void>((resolve) => {
      systemClock.scheduleTurn(resolve);
    });
    return !this.isEnded;
  }

  close(): void {
    this.#show("");
    this.#close();
  }

  #show(text: string): void {
    if (!this.#isShown || text === this.#shown) return;
    this.#shown = text;
    // Returns to the start of the line, and clears the rest of it.
    process.stderr.write(`\r${text}\u001b[K`);
  }
}
