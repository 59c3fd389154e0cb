import { type PolicyText, parsePolicy } from "../../policy/parse.js";
import { buildPolicy, type Policy } from "../../policy/policy.js";
import { quoteText } from "../../policy/problems/problem.js";
import type { ParseProblems } from "../../policy/problems/problem-log.js";
import { parseScenario, type Scenario } from "../../policy/scenario/parse-scenario.js";
import {
  parseVariation,
  type ScenarioTexts,
  type VariedSetting,
  varyTexts,
} from "../../policy/scenario/vary.js";
import type { RunControl } from "../../simulate/engine/simulation.js";
import { simulationHtml, simulationReport } from "../../simulate/report/html-report.js";
import type { Markup } from "../../simulate/report/markup.js";
import {
  combineSettings,
  runScenarios,
  settingsLabel,
  traceFiles,
  type VariedInput,
} from "../../simulate/report/scenario-runs.js";
import { seriesCsv } from "../../simulate/report/series-csv.js";
import { meetsAll } from "../../simulate/report/simulation-result.js";
import { createDigest } from "./digest.js";

/** Maximum time that one job may simulate, in all runs: the browser keeps all series. */
const simulatedMsMax = 4 * 3_600_000;

/** A scenario to simulate, as the user wrote it. */
export interface SimulationJob {
  readonly scenario: PolicyText;
  readonly policies: readonly PolicyText[];
  /** Whether the scenario names which of `policies` it runs with. */
  readonly isOwnPolicy: boolean;
  /** The setting with several values, `path=a,b`; empty: none. */
  readonly variation: string;
}

/** A problem in a text, with its position. */
export interface JobProblem {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly id: string;
  readonly message: string;
  readonly hint: string;
}

/** Problems of a job, and notes for the user. */
export interface CheckedJob {
  readonly problems: readonly JobProblem[];
  /** A problem outside of the texts; undefined: none. */
  readonly refusal: string | undefined;
  readonly notes: readonly string[];
}

/** Results of a job, as plain data. */
export interface SimulationReport {
  readonly title: string;
  /** Undefined: the scenario has no objectives. */
  readonly isMet: boolean | undefined;
  readonly markup: readonly Markup[];
  readonly html: string;
  readonly csv: string;
  /** Policies of runs that changed the given one. */
  readonly drafts: readonly { readonly label: string; readonly files: readonly PolicyText[] }[];
}

interface ReadyJob extends CheckedJob {
  /** Empty if there is a problem. */
  readonly inputs: readonly (VariedInput & { readonly policies: readonly PolicyText[] })[];
}

const nothingWrong: ReadyJob = { problems: [], refusal: undefined, notes: [], inputs: [] };

function refused(refusal: string): ReadyJob {
  return { ...nothingWrong, refusal };
}

/** Reads a whole job, for each value of its variation. */
export function readJob(job: SimulationJob): ReadyJob {
  const texts = textsOf(job);
  if ("inputs" in texts) return texts;
  const first = readTexts(texts);
  if ("inputs" in first) return first;
  const settings = settingsOf(job.variation);
  if (typeof settings === "string") return refused(settings);
  const inputs: ReadyJob["inputs"][number][] = [];
  for (const varied of settings) {
    const changed = varyTexts(texts, varied);
    if (typeof changed === "string") return refused(changed);
    const read = readTexts(changed);
    const [problem] = read.problems;
    // The position is in a text that the user does not see.
    if (problem !== undefined) return refused(`${settingsLabel(varied)}: ${problem.message}`);
    if ("inputs" in read) return read;
    inputs.push({ ...read, varied, traces: new Map(), policies: changed.policies });
  }
  const simulatedMs = inputs.reduce((sum, { scenario }) => sum + scenario.durationMs, 0);
  if (simulatedMs > simulatedMsMax) {
    const hours = simulatedMsMax / 3_600_000;
    return refused(
      `More than ${hours} h in all runs are too much here. Shorten the duration, ` +
        "or run headgate simulate.",
    );
  }
  return { ...nothingWrong, notes: notesOf(first), inputs };
}

/** Runs a job that was read without problems. */
export async function runJob(
  { inputs }: ReadyJob,
  { job, control }: { readonly job: SimulationJob; readonly control: RunControl },
): Promise<SimulationReport> {
  const result = await runScenarios(inputs, { digest: digestOf, control });
  const changed = inputs.filter(({ policies }) => {
    return !job.isOwnPolicy && policies.some(({ text }, i) => text !== job.policies[i]?.text);
  });
  const hasObjectives = inputs.some(({ scenario }) => scenario.objectives.length > 0);
  return {
    title: result.scenario,
    isMet: hasObjectives ? meetsAll(result.runs) : undefined,
    markup: simulationReport(result),
    html: simulationHtml(result),
    csv: seriesCsv(result.runs),
    drafts: changed.map(({ varied, policies }) => {
      return { label: settingsLabel(varied), files: policies };
    }),
  };
}

/** Returns the texts to run, or the problem if the named policy is missing. */
function textsOf({ scenario, policies, isOwnPolicy }: SimulationJob): ScenarioTexts | ReadyJob {
  if (!isOwnPolicy) return { scenario, policies };
  const parsed = parseScenario(scenario);
  if (parsed.kind === "problems") return problemsOf(parsed);
  const { policy: name } = parsed.scenario;
  if (name === undefined) return { scenario, policies: [] };
  const found = policies.find(({ file }) => file === name);
  if (found !== undefined) return { scenario, policies: [found] };
  return refused(
    `The scenario names the policy ${quoteText(name)}, which this page does not have. ` +
      "Run it with another policy.",
  );
}

type ReadTexts = { readonly scenario: Scenario; readonly policy: Policy | undefined } & Pick<
  ReadyJob,
  "problems"
>;

function readTexts({ scenario: text, policies }: ScenarioTexts): ReadTexts | ReadyJob {
  const parsed = parseScenario(text);
  if (parsed.kind === "problems") return problemsOf(parsed);
  const { scenario } = parsed;
  const [trace] = traceFiles(scenario);
  if (trace !== undefined) {
    return refused(
      `The scenario reads ${quoteText(trace)}, and a browser has no such file. ` +
        "Run headgate simulate.",
    );
  }
  const name = scenario.name ?? text.file.replace(/(?:\.scenario)?\.yaml$/, "");
  const named = { ...scenario, name };
  if (policies.length === 0) return { scenario: named, policy: undefined, problems: [] };
  const policy = parsePolicy(policies);
  if (policy.kind === "problems") return problemsOf(policy);
  return { scenario: named, policy: buildPolicy("simulated", policy), problems: [] };
}

function problemsOf({ problems }: ParseProblems): ReadyJob {
  const listed = problems.map(({ file, line, column, id, message, expected, suggestion }) => {
    const hints = [
      ...(expected === undefined ? [] : [`Expected: ${expected}.`]),
      ...(suggestion === undefined ? [] : [`Did you mean ${suggestion}?`]),
    ];
    return { file, line, column, id, message, hint: hints.join(" ") };
  });
  return { ...nothingWrong, problems: listed };
}

function settingsOf(variation: string): readonly (readonly VariedSetting[])[] | string {
  if (variation === "") return combineSettings([]);
  const read = parseVariation(variation);
  return typeof read === "string" ? read : combineSettings([read]);
}

function notesOf({ scenario, policy }: ReadTexts): readonly string[] {
  if (policy === undefined) return ["The scenario has no policy: nothing is limited."];
  return scenario.services.flatMap(({ name }) => {
    if (policy.serviceIndex.named(name) !== undefined) return [];
    return [`The policy has no service ${quoteText(name)}: nothing limits it.`];
  });
}

/** No digest leaves a simulation, so a public secret is sufficient. */
const digestOf = createDigest({ a: 1, b: 2, c: 3, d: 4 });
