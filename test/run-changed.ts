import { execFileSync } from "node:child_process";
import { importGraph } from "./tidy/imports.js";
import type { Project } from "./tidy/project.js";
import { namedCode, namedPaths } from "./tidy/reach.js";
import type { Source } from "./tidy/source.js";

/** Files that every test depends on, whatever it imports. */
const usedByAll = /^(package(-lock)?\.json|tsconfig.*\.json|vitest\.config\.ts|proto\/.*)$/;

/**
 * The paths that differ from a revision: committed since, not committed yet, and not tracked yet.
 * A text instead says why that cannot be told.
 */
export function changedPaths(root: string, revision: string): readonly string[] | string {
  const git = (...args: readonly string[]): readonly string[] =>
    execFileSync("git", args, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] })
      .split("\0")
      .filter((path) => path !== "");
  try {
    return [
      ...git("diff", "--name-only", "--no-renames", "-z", "--end-of-options", revision),
      ...git("ls-files", "--others", "--exclude-standard", "-z"),
    ];
  } catch {
    return `git does not know the revision; name one that "git rev-parse" takes`;
  }
}

/**
 * The test files that a change can touch, in the order of their names: those that import a changed
 * file, at any distance, start a program that does, or name the file or a folder around it. `dist`
 * counts as the source that it is built from. Tidy reads everything.
 */
export function testsReaching(
  changed: readonly string[],
  { sources }: Pick<Project, "sources">,
): readonly string[] {
  const tests = sources.map(({ path }) => path).filter((path) => path.endsWith(".test.ts"));
  if (changed.some((path) => usedByAll.test(path))) return tests;
  const users = usersOf(sources);
  const reached = new Set([...changed, ...changed.flatMap((path) => readersOf(path, sources))]);
  for (const path of reached) for (const user of users.get(path) ?? []) reached.add(user);
  return tests.filter((path) => reached.has(path) || path === "test/tidy.test.ts");
}

/** By path of a file: the files that import it, or name it as code to run. */
function usersOf(sources: readonly Source[]): ReadonlyMap<string, readonly string[]> {
  const graph = importGraph(sources);
  const users = new Map<string, string[]>();
  for (const source of sources) {
    for (const used of [...(graph.get(source.path) ?? []), ...namedCode(source)]) {
      const known = users.get(used);
      if (known === undefined) users.set(used, [source.path]);
      else known.push(source.path);
    }
  }
  return users;
}

/** The files that name a file which is no code, such as an example, or a folder around it. */
function readersOf(path: string, sources: readonly Source[]): readonly string[] {
  if (/\.[cm]?[jt]s$/.test(path)) return [];
  return sources
    .filter((source) => namedPaths(source).some((named) => `${path}/`.startsWith(`${named}/`)))
    .map((source) => source.path);
}
