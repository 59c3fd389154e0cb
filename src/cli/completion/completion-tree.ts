import type { Command, Option } from "commander";

/** What a shell needs to know of a command. */
export interface CompletedCommand {
  readonly name: string;
  readonly description: string;
  readonly options: readonly CompletedOption[];
  /** What its arguments may be. */
  readonly words: CompletedWords;
  readonly commands: readonly CompletedCommand[];
}

/** An option. */
export interface CompletedOption {
  /** As `-o` and `--output`. */
  readonly flags: readonly string[];
  readonly description: string;
  /** Undefined: nothing stands behind it. */
  readonly value: CompletedWords | undefined;
}

/** Words that may stand somewhere; `file`: paths. */
export type CompletedWords =
  | { readonly kind: "choices"; readonly choices: readonly string[] }
  | { readonly kind: "file" | "folder" | "any" };

/** Reads what commander was told. */
export function completionTree(command: Command): CompletedCommand {
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

/** What `help` explains. */
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

/** Names of what stands behind options and commands say what it is. */
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
