import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { doctorProblemRows } from "../../src/doctor/doctor-problems.js";
import { generateProblemRows } from "../../src/generate/base/generate-problems.js";
import type { ProblemRow } from "../../src/policy/problems/problem-row.js";
import { nameOf, parseSource, visit } from "../tidy/source.js";
import { renderPage } from "./reference/markdown.js";
import { referencePages } from "./reference/pages.js";

const folder = fileURLToPath(new URL("../../docs/reference", import.meta.url));
const isUpdating = process.env["UPDATE_GOLDEN"] === "1";
const pages = await referencePages();

function pathsThere(): readonly string[] {
  return filesIn(folder, ".md").map((path) => path.slice(folder.length + 1));
}

/** Ids with the severities that they are reported with, wherever both stand in one object. */
function reportedSeverities(): readonly (readonly [id: string, severity: string])[] {
  const root = fileURLToPath(new URL("../../src", import.meta.url));
  const files = ["generate", "doctor"].flatMap((name) => filesIn(join(root, name), ".ts"));
  return files.flatMap((path) => {
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

  it("tells the severity that each problem is reported with", () => {
    const rows: Readonly<Record<string, ProblemRow>> = {
      ...generateProblemRows,
      ...doctorProblemRows,
    };
    const pairs = reportedSeverities();
    expect(pairs.length).toBeGreaterThan(50);
    const wrong = pairs.filter(([id, severity]) => {
      const { severity: told = "error" } = rows[id] ?? {};
      return told !== "either" && told !== severity;
    });
    expect(wrong).toEqual([]);
  });

  it("stays readable", () => {
    const long = pages.filter((page) => renderPage(page).split("\n").length > 450);
    expect(long.map(({ path }) => path)).toEqual([]);
  });
});
