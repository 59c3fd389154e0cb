import { Argument, type Command, type Option } from "commander";
import type { CommandContext } from "../terminal/context.js";
import { addHelpTexts } from "../terminal/help-texts.js";
import {
  type CompletedCommand,
  type CompletedOption,
  type CompletedWords,
  completionScript,
  type Shell,
  shells,
} from "./completion-scripts.js";

/** Reads the commands and options registered in commander. */
function completionTree(command: Command): CompletedCommand {
  const [argument] = command.registeredArguments;
  const commands = command.commands.map(completionTree);
  const known = command.name() === "help" ? siblingsOf(command) : argument?.argChoices;
  return {
    name: command.name(),
    description: firstLine(command.description()),
    options: command.options.filter(({ hidden }) => !hidden).map(completedOption),
    words: argument === undefined ? { kind: "any" } : wordsOf(argument.name(), known),
    commands,
  };
}

/** Returns the commands that `help` explains. */
function siblingsOf(command: Command): readonly string[] {
  return command.parent?.commands.map((one) => one.name()) ?? [];
}

function completedOption(option: Option): CompletedOption {
  const { short, long, description, required, optional, argChoices, flags } = option;
  const [, name = ""] = /[<[]([^\]>]+)[\]>]/.exec(flags) ?? [];
  return {
    flags: [short, long].filter((flag) => flag !== undefined),
    description: firstLine(description),
    value: required || optional ? wordsOf(name, argChoices) : undefined,
  };
}

/** The names of options' values and arguments determine the kind of their words. */
function wordsOf(name: string, choices: readonly string[] | undefined): CompletedWords {
  if (choices !== undefined) return { kind: "choices", choices };
  if (/^[a-z|]+$/.test(name) && name.includes("|")) {
    return { kind: "choices", choices: name.split("|") };
  }
  if (/FOLDER|DIR/i.test(name)) return { kind: "folder" };
  return { kind: /FILE|PATH|POLICY|LOG$|CERT|^CA$/i.test(name) ? "file" : "any" };
}

function firstLine(text: string): string {
  return text.split("\n")[0] ?? "";
}

/** Adds `headgate completion`, which prints a completion script for a shell. */
export function addCompletion(program: Command, { output }: CommandContext): void {
  const command = program
    .command("completion")
    .description("print a completion script for a shell")
    .addArgument(new Argument("<SHELL>", "the shell").choices(shells));
  addHelpTexts(command, {
    examples: `
  source <(headgate completion bash)
  source <(headgate completion zsh)
  headgate completion fish > ~/.config/fish/completions/headgate.fish`,
    exitCodes: "Exit codes: 0 printed, 2 usage.",
  }).action((shell: Shell) => {
    output.out(completionScript(shell, completionTree(program)));
  });
}
