import type { Command } from "commander";
import { quoteText } from "../../policy/problems/problem.js";
import { findNearestName } from "../../policy/text/nearest-name.js";
import type { CommandContext } from "../terminal/context.js";
import { addHelpTexts } from "../terminal/help-texts.js";
import { findHelp, isIdLike, renderIdHelp } from "./help-problem.js";

/** Adds `headgate help`, which explains a command, a subcommand, or a problem id. */
export function addHelp(program: Command, { output }: CommandContext): void {
  const command = program
    .helpCommand(false)
    .command("help")
    .description("explain a command, a problem id, or an error code")
    .argument("[WORD...]", "a command, an id such as HG231, or a code such as STORE_TIMEOUT");
  addHelpTexts(command, {
    examples: `
  headgate help generate
  headgate help keys override
  headgate help HG231
  headgate help STORE_TIMEOUT`,
    exitCodes: "Exit codes: 0 explained, 2 there is no such command, id or code.",
  }).action((words: readonly string[]) => {
    const complain = (message: string): never => command.error(`error: ${message}`);
    const [first] = words;
    if (first === undefined) return program.help();
    if (findCommand(program, first) === undefined && isIdLike(first)) {
      const found = findHelp(first);
      if (found.kind === "found") return output.out(renderIdHelp(found.help));
      return complain(`no help for the id ${quoteText(first)}${suggestion(found.nearest)}`);
    }
    let at = program;
    for (const word of words) {
      const next = findCommand(at, word);
      if (next === undefined) {
        const nearest = findNearestName(
          word,
          at.commands.map((one) => one.name()),
        );
        return complain(`unknown command: ${quoteText(word)}${suggestion(nearest)}`);
      }
      at = next;
    }
    at.help();
  });
}

function findCommand(at: Command, word: string): Command | undefined {
  return at.commands.find((one) => one.name() === word || one.aliases().includes(word));
}

function suggestion(nearest: string | undefined): string {
  return nearest === undefined ? "" : `\n(Did you mean ${nearest}?)`;
}
