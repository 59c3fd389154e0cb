import type { Command } from "commander";
import { exitCodes } from "../../app/base/failure.js";
import { formatPolicy } from "../../policy/format/format-policy.js";
import type { PolicyText } from "../../policy/parse.js";
import { formatProblems, visibleText } from "../../policy/problems/problem.js";
import { isPageFile } from "../../policy/waiting-rooms/page-file.js";
import { readFilesOrInput } from "../input/policy-texts.js";
import { writeWholeFile } from "../input/whole-file.js";
import { CommandFailure } from "../terminal/command-failure.js";
import type { CommandContext } from "../terminal/context.js";
import { addHelpTexts } from "../terminal/help-texts.js";

interface FmtOptions {
  readonly check?: true;
  readonly write?: true;
}

/** Adds `headgate fmt`, which formats policy files of either dialect. */
export function addFmt(program: Command, context: CommandContext): void {
  const command = program
    .command("fmt")
    .description("format policy files, of either dialect")
    .argument("<FILE...>", "files, directories of *.yaml and *.yml files, or - for standard input")
    .option("-w, --write", "write changed files instead of printing one")
    .option("-c, --check", "list files that would change, and exit with 4 if there are any");
  addHelpTexts(command, {
    examples: `
  headgate fmt policy.yaml
  headgate fmt --write policies/
  headgate fmt --check policies/ || echo "run headgate fmt --write"`,
    notes: `
Keys follow the order of the language, indentation is two spaces, and what does not fit into 100
columns gets its own lines. Comments, texts, numbers and durations are kept. A file with aliases
keeps the order of its keys.`,
    exitCodes:
      "Exit codes: 0 done, 1 a file cannot be read or written, 2 usage, 3 not YAML, " +
      "4 files would change.",
  }).action(async (paths: readonly string[], options: FmtOptions) => {
    const complain = (message: string): never => command.error(`error: ${message}`);
    if (options.check && options.write) complain("--check and --write exclude each other");
    if (options.write && paths.includes("-")) complain("standard input cannot be written");
    const read = await readAll(paths);
    if (!options.check && !options.write && read.length > 1) {
      complain("only one file can be printed; use --write or --check for several");
    }
    context.exitWith(await format(read, options, context));
  });
}

async function readAll(paths: readonly string[]): Promise<readonly PolicyText[]> {
  const sources: PolicyText[] = [];
  for (const path of new Set(paths)) {
    const read = await readFilesOrInput(path, "yamlFiles");
    if (read.kind === "unreadable") {
      throw new CommandFailure(exitCodes.failure, visibleText(read.message));
    }
    sources.push(...read.sources.filter(({ file }) => !isPageFile(file)));
  }
  return sources;
}

/** Writes nothing if a file cannot be formatted. Returns the exit code. */
async function format(
  sources: readonly PolicyText[],
  { check, write }: FmtOptions,
  { output }: CommandContext,
): Promise<number> {
  const formatted: { readonly source: PolicyText; readonly text: string }[] = [];
  let hasProblem = false;
  for (const source of sources) {
    const result = formatPolicy(source);
    if (result.kind === "formatted") formatted.push({ source, text: result.text });
    else output.err(formatProblems(result));
    hasProblem ||= result.kind === "problems";
  }
  if (hasProblem) return exitCodes.invalidPolicy;
  const changed = formatted.filter(({ source, text }) => source.text !== text);
  if (check) {
    for (const { source } of changed) output.out(visibleText(source.file));
    return changed.length === 0 ? exitCodes.ok : exitCodes.stale;
  }
  if (!write) {
    for (const { text } of formatted) output.out(text.replace(/\n$/, ""));
    return exitCodes.ok;
  }
  for (const { source, text } of changed) {
    await writeWholeFile(source.file, text);
    output.out(visibleText(source.file));
  }
  return exitCodes.ok;
}
