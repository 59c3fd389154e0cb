import { readdirSync } from "node:fs";
import { basename, dirname, extname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { exitCodes } from "../../app/base/failure.js";
import { ownFile } from "../../app/base/own-file.js";
import { readErrorWords } from "../../app/config/policy-files.js";
import { type PolicyText, parsePolicy } from "../../policy/parse.js";
import { buildPolicy, type Policy } from "../../policy/policy.js";
import { formatProblems, visibleText } from "../../policy/problems/problem.js";
import { parseScenario, type Scenario } from "../../policy/scenario/parse-scenario.js";
import type { ScenarioTexts } from "../../policy/scenario/vary.js";
import { findNearestName } from "../../policy/text/nearest-name.js";
import { type ScenarioInput, traceFiles } from "../../simulate/report/scenario-runs.js";
import { readPolicyTexts } from "../input/policy-texts.js";
import { readFileUpTo } from "../input/small-file.js";
import { CommandFailure, usageFailure } from "../terminal/command-failure.js";
import type { Output } from "../terminal/context.js";

/** Maximum number of lines in a trace. */
const traceLinesMax = 1_000_000;

/** Maximum size of a trace, in bytes: the maximum of lines with the longest numbers. */
const traceBytesMax = 21 * traceLinesMax;

/** Maximum number in a trace: a day in milliseconds. */
const traceNumberMax = 86_400_000;

/** A scenario in the package. */
export interface PackagedScenario {
  readonly name: string;
  readonly path: string;
}

/** Returns the scenarios of the package, by name. */
export function packagedScenarios(): readonly PackagedScenario[] {
  const folder = ownFile("scenarios/");
  if (folder === undefined) return [];
  return readdirSync(folder)
    .filter((file) => file.endsWith(".scenario.yaml"))
    .sort()
    .map((file) => ({
      name: basename(file, ".scenario.yaml"),
      path: fileURLToPath(new URL(file, folder)),
    }));
}

/**
 * Returns the path of a scenario named on the command line.
 *
 * @throws CommandFailure
 */
export function scenarioPath(named: string): string {
  if (/[./\\]/.test(named)) return named;
  const packaged = packagedScenarios();
  const found = packaged.find(({ name }) => name === named);
  if (found !== undefined) return found.path;
  const nearest = findNearestName(
    named,
    packaged.map(({ name }) => name),
  );
  const hint = nearest === undefined ? "" : ` Did you mean ${nearest}?`;
  const list = "`headgate simulate --list` shows the scenarios of the package.";
  throw usageFailure(`There is no scenario "${visibleText(named)}".${hint} ${list}`);
}

/**
 * Reads the texts of a scenario and its policy.
 *
 * @throws CommandFailure, without a message if `output` already has the scenario's problems
 */
export async function readScenarioTexts(path: string, output: Output): Promise<ScenarioTexts> {
  const scenario = await readOne(path);
  const { policy } = parseOrFail(scenario, output);
  const paths = policy === undefined ? [] : [resolve(dirname(path), policy)];
  return { scenario, policies: (await readPolicyTexts(paths)).sources };
}

async function readOne(path: string): Promise<PolicyText> {
  const [source, ...others] = (await readPolicyTexts([path])).sources;
  if (source !== undefined && others.length === 0) return source;
  throw new CommandFailure(exitCodes.failure, `${visibleText(path)} is not a single file`);
}

/**
 * Reads texts as a scenario with its policy and traces.
 *
 * @throws CommandFailure without a message if they are invalid, which is reported on `output`
 */
export function readScenario(
  { scenario: source, policies }: ScenarioTexts,
  output: Output,
): ScenarioInput {
  const scenario = parseOrFail(source, output);
  const policy = policies.length === 0 ? undefined : readPolicy(policies, output);
  const folder = dirname(source.file);
  const files = traceFiles(scenario);
  const traces = new Map(files.map((file) => [file, readTrace(resolve(folder, file))]));
  const name = scenario.name ?? basename(source.file, extname(source.file));
  return { scenario: { ...scenario, name: name.replace(/\.scenario$/, "") }, policy, traces };
}

function parseOrFail(source: PolicyText, output: Output): Scenario {
  const parsed = parseScenario(source);
  if (parsed.kind === "scenario") return parsed.scenario;
  output.err(formatProblems(parsed));
  throw new CommandFailure(exitCodes.invalidPolicy, "");
}

function readPolicy(sources: readonly PolicyText[], output: Output): Policy {
  const parsed = parsePolicy(sources);
  if (parsed.kind === "policy") return buildPolicy("simulated", parsed);
  output.err(formatProblems(parsed));
  throw new CommandFailure(exitCodes.invalidPolicy, "");
}

/** Reads one number per line. Empty lines and lines that start with `#` are ignored. */
function readTrace(path: string): readonly number[] {
  const shown = visibleText(path);
  let text: string | undefined;
  try {
    text = readFileUpTo(path, traceBytesMax);
  } catch (thrown) {
    const words = readErrorWords(thrown);
    throw new CommandFailure(exitCodes.failure, `${shown} cannot be read: ${words}`);
  }
  const lines = text?.split(/\r?\n/);
  if (lines === undefined || lines.length > traceLinesMax) {
    throw new CommandFailure(
      exitCodes.invalidPolicy,
      `${shown} has more than ${traceLinesMax.toLocaleString("en")} lines: shorten it`,
    );
  }
  const numbers = lines.flatMap((line, i) => {
    if (/^\s*(?:#.*)?$/.test(line)) return [];
    const value = /^\s*[0-9]{1,9}(?:\.[0-9]{1,9})?\s*$/.test(line) ? Number(line) : Number.NaN;
    if (value <= traceNumberMax) return [value];
    throw new CommandFailure(
      exitCodes.invalidPolicy,
      `${shown}:${i + 1}: this is not a number from 0 to ${traceNumberMax}: write one a line`,
    );
  });
  if (numbers.length > 0) return numbers;
  throw new CommandFailure(exitCodes.invalidPolicy, `${shown} has no numbers: write one a line`);
}
