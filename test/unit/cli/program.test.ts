import { describe, expect, it } from "vitest";
import { runCli } from "../../../src/cli/program.js";

/** Runs a command line and answers all that it did. */
async function run(...args: readonly string[]) {
  let out = "";
  let err = "";
  const output = {
    out: (text: string) => {
      out += text;
    },
    err: (text: string) => {
      err += text;
    },
  };
  const code = await runCli(args, output);
  return { code, out, err };
}

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
    [["check"], "name files to check"],
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
