import { Argument, type Command } from "commander";
import type { CommandContext } from "../terminal/context.js";
import { completionScript, type Shell, shells } from "./completion-scripts.js";
import { completionTree } from "./completion-tree.js";

/** Adds `headgate completion`: a script that teaches a shell this command line. */
export function addCompletion(program: Command, { output }: CommandContext): void {
  program
    .command("completion")
    .description("print a script with which a shell completes commands, options and choices")
    .addArgument(new Argument("<SHELL>", "the shell").choices(shells))
    .addHelpText(
      "before",
      `Examples:
  source <(headgate completion bash)
  source <(headgate completion zsh)
  headgate completion fish > ~/.config/fish/completions/headgate.fish
`,
    )
    .addHelpText(
      "after",
      `
Exit codes: 0 printed, 2 usage.`,
    )
    .action((shell: Shell) => {
      output.out(completionScript(shell, completionTree(program)));
    });
}
