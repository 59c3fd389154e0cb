import type { Command } from "commander";
import { describe, expect, it } from "vitest";
import { createProgram } from "../../../src/cli/program.js";
import { processTerminal } from "../../../src/cli/terminal/terminal.js";
import { type CliRun, captureCli } from "../../support/cli.js";

const run = (...args: readonly string[]): Promise<CliRun> => captureCli(args);

describe("headgate", () => {
  it("shows commands and examples without arguments, as wrong usage", async () => {
    const { code, err } = await run();
    expect(code).toBe(2);
    for (const word of ["serve", "demo", "check", "version", "Examples:"]) {
      expect(err).toContain(word);
    }
  });

  it.each([
    ["--help", "Examples:"],
    ["help", "Examples:"],
    ["version", "headgate 0."],
    ["--version", "0."],
  ])("answers %s with 0, to stdout", async (word, expected) => {
    const { code, out, err } = await run(word);
    expect(code).toBe(0);
    expect(out).toContain(expected);
    expect(err).toBe("");
  });

  it.each([
    [["chek", "x.yaml"], "Did you mean check?"],
    [["serve", "--polcy", "x"], "Did you mean --policy?"],
    [["check"], "pass files to check"],
    [["check", "-o", "xml", "x"], "text, json"],
    [["serve", "extra"], "too many arguments"],
    [["version", "--wrong"], "unknown option"],
  ])("answers %o with 2 and a hint, to stderr", async (args, hint) => {
    const { code, out, err } = await run(...args);
    expect(code).toBe(2);
    expect(err).toContain(hint);
    expect(out).toBe("");
  });

  it.each(["serve", "demo", "check"])("has examples in the help of %s", async (command) => {
    const { code, out } = await run("help", command);
    expect(code).toBe(0);
    expect(out).toContain("Examples:");
    expect(out).toContain(`headgate ${command}`);
  });
});

const context = {
  output: { out: () => {}, err: () => {} },
  env: {},
  terminal: processTerminal,
  exitWith: () => {},
};
const wholeProgram = await createProgram(context);

/** Every command that does something, by the words that lead to it. */
function commandsBelow(
  command: Command,
  path: readonly string[] = [],
): readonly { readonly words: string; readonly command: Command }[] {
  return command.commands.flatMap((one) => {
    const words = [...path, one.name()];
    const inner = commandsBelow(one, words);
    return inner.length > 0 ? inner : [{ words: words.join(" "), command: one }];
  });
}

/** As `--help` prints it, with what stands before and after. */
function helpOf(command: Command): string {
  let text = "";
  command.configureOutput({
    writeOut: (part) => {
      text += part;
    },
  });
  command.outputHelp();
  return text;
}

const commands = commandsBelow(wholeProgram);

describe("every command of headgate", () => {
  it("is looked at", () => {
    expect(commands.map(({ words }) => words)).toEqual(
      expect.arrayContaining(["check", "doctor", "keys get", "help", "completion"]),
    );
  });

  it.each(commands)("$words says what it does, shows examples, and names its exit codes", (one) => {
    const { words, command } = one;
    const help = helpOf(command);
    expect(command.description()).toMatch(/^[a-z].{5,}[^.]$/);
    expect(help).toContain("Examples:");
    expect(help).toContain(`headgate ${words}`);
    expect(help).toMatch(/Exit codes: 0 /);
  });

  it.each(commands)("$words shows examples before its options", ({ command }) => {
    const help = helpOf(command);
    const options = help.search(/^[A-Z][\w ]*:\n\s+-/m);
    expect(help.indexOf("Examples:")).toBeLessThan(options);
  });

  it.each(commands)("$words describes all of its options", ({ command }) => {
    for (const { long, description } of command.options) {
      expect([long, description.length > 3]).toEqual([long, true]);
    }
  });
});

describe("createProgram()", () => {
  const names = wholeProgram.commands.map((one) => one.name());
  const others = names.filter((name) => !["help", "completion"].includes(name));

  it.each(others)("has %s alone where the command line begins so", async (name) => {
    const { commands: alone } = await createProgram(context, name);
    expect(alone.map((one) => one.name())).toEqual([name]);
  });

  it.each(["help", "completion", "--help", "chek"])(
    "has all where it begins with %s",
    async (word) => {
      const { commands: all } = await createProgram(context, word);
      expect(all.map((one) => one.name())).toEqual(names);
    },
  );
});
