import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { describe, expect, it } from "vitest";
import { createProgram } from "../../src/cli/program.js";
import { processTerminal } from "../../src/cli/terminal/terminal.js";
import { doctorProblemRows } from "../../src/doctor/doctor-problems.js";
import type { ProblemRow } from "../../src/policy/problems/problem-row.js";
import { markedBlocks } from "../support/docs.js";
import { nameOf, parseSource, visit } from "../tidy/source.js";
import { renderPage } from "./reference/markdown.js";
import { referencePages } from "./reference/pages.js";

const folder = fileURLToPath(new URL("../../docs/reference", import.meta.url));
const isUpdating = process.env["UPDATE_GOLDEN"] === "1";
const pages = await referencePages();

function pathsThere(): readonly string[] {
  return filesIn(folder, ".md").map((path) => path.slice(folder.length + 1));
}

/** Ids of doctor with the severities that they are reported with; others have their rows'. */
function reportedSeverities(): readonly (readonly [id: string, severity: string])[] {
  const root = fileURLToPath(new URL("../../src", import.meta.url));
  return filesIn(join(root, "doctor"), ".ts").flatMap((path) => {
    const found: (readonly [string, string])[] = [];
    visit(parseSource(path, readFileSync(path, "utf8")), {
      ObjectExpression: ({ properties }) => {
        const textOf = (name: string): string => {
          const property = properties.find((one) => "key" in one && nameOf(one.key) === name);
          return property !== undefined && "value" in property ? nameOf(property.value) : "";
        };
        const pair = [textOf("id"), textOf("severity")] as const;
        if (/^HG/.test(pair[0]) && /^(?:error|warning)$/.test(pair[1])) found.push(pair);
      },
    });
    return found;
  });
}

function filesIn(path: string, ending: string): readonly string[] {
  const entries = readdirSync(path, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && entry.name.endsWith(ending))
    .map((entry) => join(entry.parentPath, entry.name));
}

/** The calls of `headgate` in examples, each on a line of its own. */
function commandLines(): readonly string[] {
  return markedBlocks("command").flatMap(({ text }) =>
    text
      .replaceAll(/\\\n\s*/g, "")
      .split("\n")
      .flatMap((line) => /\bheadgate (?!<)[^|>#)]+/.exec(line)?.[0].trim() ?? []),
  );
}

/** As a shell parts them: quotes hold words together. */
function wordsOf(line: string): readonly string[] {
  const words = line.match(/(?:[^\s"']|"[^"]*"|'[^']*')+/g) ?? [];
  return words.slice(1).map((word) => word.replaceAll(/["']/g, ""));
}

describe("docs/reference", () => {
  it.each(pages)("$path is what the code gives", (page) => {
    const path = join(folder, page.path);
    if (isUpdating) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, renderPage(page));
    }
    expect(readFileSync(path, "utf8"), "run npm run reference").toBe(renderPage(page));
  });

  it("holds no other page", () => {
    const known = pages.map(({ path }) => path);
    const others = pathsThere().filter((path) => !known.includes(path));
    if (isUpdating) for (const path of others) rmSync(join(folder, path));
    expect(isUpdating ? [] : others).toEqual([]);
  });

  it("tells the severity that each problem of doctor is reported with", () => {
    const rows: Readonly<Record<string, ProblemRow>> = doctorProblemRows;
    const pairs = reportedSeverities();
    expect(pairs.length).toBeGreaterThan(20);
    const wrong = pairs.filter(([id, severity]) => {
      const { severity: reported = "error" } = rows[id] ?? {};
      return reported !== "either" && reported !== severity;
    });
    expect(wrong).toEqual([]);
  });

  it.each(commandLines())("shows a command that the command line takes: %s", async (line) => {
    const errors: string[] = [];
    const output = { out: () => {}, err: (text: string) => void errors.push(text) };
    const context = { output, env: {}, terminal: processTerminal, exitWith: () => {} };
    const program = await createProgram(context);
    let ran = "";
    const withBelow = (command: Command): readonly Command[] => {
      return [command, ...command.commands.flatMap(withBelow)];
    };
    for (const command of withBelow(program).slice(1)) {
      if (command.commands.length === 0) {
        command.action(() => {
          ran = command.name();
        });
      }
    }
    await program.parseAsync(wordsOf(line), { from: "user" }).catch(() => {});
    expect(errors).toEqual([]);
    expect(ran).not.toBe("");
  });

  it("stays readable", () => {
    const long = pages.filter((page) => renderPage(page).split("\n").length > 450);
    expect(long.map(({ path }) => path)).toEqual([]);
  });
});
