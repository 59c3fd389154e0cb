import type { Command, Option } from "commander";
import { createProgram } from "../../../src/cli/program.js";
import { processTerminal } from "../../../src/cli/terminal/terminal.js";
import { block, code, paragraphs, plain, type ReferencePage, slug, table } from "./markdown.js";

const intro = `\
For help on a command, use \`--help\` or \`headgate help COMMAND\`. \`headgate completion SHELL\`
prints a completion script for bash, zsh or fish. [Exit codes](errors.md#exit-codes) have the same
meaning for all commands. In a checkout, \`headgate\` is
\`node dist/cli/main.js\`.`;

/** What a command prints before and after its own help: examples, and more to know. */
function textsAround(command: Command): readonly string[] {
  let printed = "";
  command.configureOutput({
    writeOut: (text) => {
      printed += text;
    },
  });
  command.outputHelp();
  return printed.split(command.helpInformation()).map((text) => text.trim());
}

function fullName(command: Command): string {
  const { parent } = command;
  return parent === null ? command.name() : `${fullName(parent)} ${command.name()}`;
}

function isShown(command: Command): boolean {
  return command.name() !== "help" || command.registeredArguments.length > 0;
}

function withBelow(command: Command): readonly Command[] {
  return [command, ...command.commands.filter(isShown).flatMap(withBelow)];
}

function optionRow({ flags, description, argChoices, defaultValue, mandatory }: Option): string[] {
  const choices = argChoices === undefined ? "" : ` One of ${argChoices.map(code).join(", ")}.`;
  const isSaid = typeof defaultValue === "string" || typeof defaultValue === "number";
  const standard = isSaid ? ` Default: ${code(String(defaultValue))}.` : "";
  const needed = mandatory ? " Required." : "";
  return [code(flags), `${sentence(description)}${choices}${standard}${needed}`];
}

function sentence(text: string): string {
  const begun = (text.charAt(0).toUpperCase() + text.slice(1)).replaceAll("*", "\\*");
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}

/** A test lets the command line read each of them. */
function examplesBlock(text: string): string {
  return `<!-- test: command -->\n${block(text.replaceAll(/^ {2}/gm, ""), "sh")}`;
}

function renderCommand(command: Command): string {
  const name = fullName(command);
  const shown = command.createHelp().visibleOptions(command);
  const options = shown.filter(({ long }) => long !== "--help").map(optionRow);
  const words = command.registeredArguments.map((argument) => [
    code(argument.name()),
    `${sentence(argument.description)}${
      argument.argChoices === undefined
        ? ""
        : ` One of ${argument.argChoices.map(code).join(", ")}.`
    }`,
  ]);
  const [examples = "", after = ""] = textsAround(command);
  const before = examples.replace(/^Examples:\n/, "");
  const hasSettings = name === "headgate serve";
  const isFirst = command.parent?.parent === null;
  return paragraphs(
    isFirst ? "" : `## ${name}`,
    isFirst ? "" : plain(sentence(command.description())),
    block(`${name} ${command.usage()}`),
    before === "" ? "" : `Examples:\n\n${examplesBlock(before)}`,
    words.length === 0 ? "" : table(["argument", "meaning"], words),
    hasSettings ? "Its options are the [settings](../settings.md) of the service." : "",
    hasSettings || options.length === 0 ? "" : table(["option", "meaning"], options),
    after === "" ? "" : block(after, "text"),
  );
}

function commandPage(command: Command): ReferencePage {
  const name = command.name();
  return {
    path: `cli/${name}.md`,
    title: `headgate ${name}`,
    purpose: sentence(command.description()),
    body: paragraphs(...withBelow(command).map(renderCommand)),
  };
}

/** Every command and option, from the command line itself; a page each. */
export async function cliPages(): Promise<readonly ReferencePage[]> {
  const program = await createProgram({
    output: { out: () => {}, err: () => {} },
    env: {},
    terminal: processTerminal,
    exitWith: () => {},
  });
  const commands = program.commands.filter(isShown);
  const rows = commands.flatMap(withBelow).map((command) => {
    const [, first = "", ...more] = fullName(command).split(" ");
    const heading = more.length === 0 ? "" : `#${slug(fullName(command))}`;
    return [
      `[${[first, ...more].join(" ")}](cli/${first}.md${heading})`,
      sentence(command.description()),
    ];
  });
  const index = {
    path: "cli.md",
    title: "Command line",
    purpose:
      "This page lists the commands of `headgate`, with their arguments, options and exit codes.",
    body: paragraphs(intro, table(["command", "description"], rows)),
  };
  return [index, ...commands.map(commandPage)];
}
