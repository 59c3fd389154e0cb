import type { Source, Violation } from "./source.js";

/** The page that lists the files of each decision, in their order. */
export const decisionPage = "docs/internals/decisions.md";

/** From a handler to the line that allows or denies. */
const filesMax = 6;

/** A numbered item of the page: a file, and what it calls in the next one. */
const itemPattern = /^(\d+)\. `(src\/[^`]+)`(?: calls `([^`]+)`)?/gm;

interface PathItem {
  readonly path: string;
  readonly calls: string | undefined;
  readonly line: number;
}

/** Paths of decisions that are too long, or that no longer go as the page says. */
export function checkDecisionPaths(sources: readonly Source[], page: string): Violation[] {
  const paths = readPaths(page);
  if (paths.length < 2) return [violation(1, "lists the files of both decisions, in their order")];
  const textOf = new Map(sources.map(({ path, text }) => [path, text]));
  return paths.flatMap((items) => [
    ...items.slice(filesMax).map(({ line }) => violation(line, `is more than ${filesMax} files`)),
    ...items.flatMap((item, i) => checkItem(item, items[i + 1], textOf)),
  ]);
}

function readPaths(page: string): readonly (readonly PathItem[])[] {
  const paths: PathItem[][] = [];
  for (const { 1: number, 2: path = "", 3: calls, index } of page.matchAll(itemPattern)) {
    if (number === "1") paths.push([]);
    paths.at(-1)?.push({ path, calls, line: page.slice(0, index).split("\n").length });
  }
  return paths;
}

function checkItem(
  { path, calls, line }: PathItem,
  next: PathItem | undefined,
  textOf: ReadonlyMap<string, string>,
): Violation[] {
  const text = textOf.get(path);
  if (text === undefined) return [violation(line, `there is no ${path}`)];
  if (next === undefined) return [];
  if (calls === undefined) return [violation(line, "says nothing of what it calls")];
  if (!text.includes(`${calls}(`)) return [violation(line, `${path} calls no ${calls}`)];
  const name = calls.replace(/.*\./, "");
  const isDeclared = new RegExp(`^ *(?:export function |async )?${name}\\(`, "m");
  if (isDeclared.test(textOf.get(next.path) ?? "")) return [];
  return [violation(next.line, `${next.path} has no ${name}`)];
}

function violation(line: number, message: string): Violation {
  return { path: decisionPage, line, message };
}
