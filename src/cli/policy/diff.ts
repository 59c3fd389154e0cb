import type { Command } from "commander";
import { exitCodes } from "../../app/base/failure.js";
import { many } from "../../core/base/many.js";
import type { PolicyChange } from "../../policy/diff/policy-change.js";
import { comparePolicies } from "../../policy/diff/policy-diff.js";
import { type ParsedPolicy, parsePolicy } from "../../policy/parse.js";
import { formatProblems, visibleText } from "../../policy/problems/problem.js";
import { readPolicyTexts } from "../input/policy-texts.js";
import { reportFormatOption } from "../input/report-format.js";
import type { CommandContext } from "../terminal/context.js";
import { addHelpTexts } from "../terminal/help-texts.js";
import { drawTable } from "../terminal/text-table.js";

interface DiffOptions {
  readonly output: "table" | "json";
}

/** Adds `headgate diff`, which describes the changes between two policies in words. */
export function addDiff(program: Command, context: CommandContext): void {
  const command = program
    .command("diff")
    .description("describe the changes from one policy to another")
    .argument("<OLD>", "a file, or a directory of *.yaml and *.yml files")
    .argument("<NEW>", "the same, for the new policy")
    .addOption(reportFormatOption(["table", "json"]));
  addHelpTexts(command, {
    examples: `
  headgate diff policy.yaml new-policy.yaml
  git show main:policy.yaml > old.yaml && headgate diff old.yaml policy.yaml
  headgate diff -o json old/ new/ | jq '.changes[] | select(.effect == "stricter")'`,
    notes: `
Lists changes limit by limit, and for services field by field: what becomes stricter, looser or
different, and whether buckets keep their state. Formatting does not matter.`,
    exitCodes: "Exit codes: 0 no changes, 1 a file cannot be read, 2 usage, 3 invalid, 4 changes.",
  }).action(async (old: string, young: string, { output }: DiffOptions) => {
    context.exitWith(await runDiff({ old, young, format: output, context }));
  });
}

interface DiffRun {
  readonly old: string;
  readonly young: string;
  readonly format: DiffOptions["output"];
  readonly context: CommandContext;
}

async function runDiff({ old, young, format, context }: DiffRun): Promise<number> {
  const { output } = context;
  const policies: Extract<ParsedPolicy, { kind: "policy" }>[] = [];
  let isWrong = false;
  for (const path of [old, young]) {
    const parsed = parsePolicy((await readPolicyTexts([path])).sources);
    if (parsed.kind === "policy") policies.push(parsed);
    else output.err(formatProblems(parsed));
    isWrong ||= parsed.kind === "problems";
  }
  const [before, after] = policies;
  if (isWrong || before === undefined || after === undefined) return exitCodes.invalidPolicy;
  const changes = comparePolicies(before, after);
  output.out(format === "json" ? asJson(changes) : asTable(changes));
  return changes.length === 0 ? exitCodes.ok : exitCodes.stale;
}

function asJson(changes: readonly PolicyChange[]): string {
  return JSON.stringify({ same: changes.length === 0, changes }, undefined, 2);
}

function asTable(changes: readonly PolicyChange[]): string {
  if (changes.length === 0) return "No changes.";
  const rows = changes.map(({ effect, place, words }) => [
    effect,
    visibleText(place),
    visibleText(words),
  ]);
  const table = drawTable([{ title: "effect" }, { title: "where" }, { title: "what" }], rows);
  const count = (effect: string): number => rows.filter(([own]) => own === effect).length;
  const sums = ["stricter", "looser", "different"]
    .filter((effect) => count(effect) > 0)
    .map((effect) => `${count(effect)} ${effect}`);
  return [...table, "", `${many(changes.length, "change")}: ${sums.join(", ")}.`].join("\n");
}
