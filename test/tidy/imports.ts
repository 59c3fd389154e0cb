import { posix } from "node:path";
import { importTarget, matches, matchesAny } from "./paths.js";
import { importHomes, importRows, libraryEntries } from "./rules.js";
import { type Source, type Violation, violationAt } from "./source.js";

/** Imports that the table of the architecture does not hold. */
export function checkDirections(source: Source): Violation[] {
  const row = importRows.find(({ from }) => matches(from, source.path));
  if (row === undefined) {
    const message = "stands in a folder that the import table does not know";
    return [{ path: source.path, line: 1, message }];
  }
  return source.imports.flatMap(({ specifier, line }) => {
    const target = importTarget(source.path, specifier).path;
    const message = directionMessage(source.path, target, row.may);
    return message === undefined ? [] : [{ path: source.path, line, message }];
  });
}

function directionMessage(
  from: string,
  target: string,
  may: readonly string[],
): string | undefined {
  if (target.endsWith(".test.ts")) return `imports the test ${target}; move it to test/support`;
  if (!matchesAny(may, target)) return `must not import ${target}; it may: ${may.join(", ")}`;
  if (!from.startsWith("src/")) return undefined;
  const home = importHomes.find(({ what }) => matches(what, target));
  if (home === undefined || matchesAny(home.only, from)) return undefined;
  return `must not import ${target}; only ${home.only.join(", ")} may`;
}

/** Default exports, `export *`, and files that only pass on what others define. */
export function checkExportForms(source: Source): Violation[] {
  const found: Violation[] = [];
  const { body } = source.program;
  const isPassing = body.every(
    (node) =>
      node.type === "ImportDeclaration" ||
      node.type === "ExportAllDeclaration" ||
      (node.type === "ExportNamedDeclaration" && node.declaration === null),
  );
  const exporting = body.find(
    ({ type }) => type === "ExportAllDeclaration" || type === "ExportNamedDeclaration",
  );
  if (isPassing && exporting !== undefined && !matchesAny(libraryEntries, source.path)) {
    const message = "only re-exports; delete it and import the files that define the things";
    found.push(violationAt(source, exporting.start, message));
  }
  for (const node of body) {
    if (node.type === "ExportAllDeclaration") {
      found.push(violationAt(source, node.start, "export * hides names; export each by name"));
    }
    const isDefault =
      node.type === "ExportDefaultDeclaration" ||
      (node.type === "ExportNamedDeclaration" &&
        node.specifiers.some(({ exported }) => "name" in exported && exported.name === "default"));
    if (isDefault) found.push(violationAt(source, node.start, "default export; export a name"));
  }
  return found;
}

/** Imports of files that are not there; generated ones are the build's business. */
export function checkTargetsExist(sources: readonly Source[]): Violation[] {
  const paths = new Set(sources.map(({ path }) => path));
  return sources.flatMap(({ path, imports }) =>
    imports.flatMap(({ specifier, line }) => {
      const target = importTarget(path, specifier);
      if (target.kind !== "file" || target.path.startsWith("src/gen/")) return [];
      if (paths.has(target.path) || !/\.(?:[cm]?[jt]s|tsx)$/.test(target.path)) return [];
      return [{ path, line, message: `imports ${target.path}, which is not there` }];
    }),
  );
}

/** Circles of imports, each once, as the shortest way round from its first file. */
export function checkCycles(sources: readonly Source[]): Violation[] {
  return circlesOf(importGraph(sources));
}

/** Circles of imports between folders of src, as those between files. */
export function checkFolderCycles(sources: readonly Source[]): Violation[] {
  const edges = new Map<string, Set<string>>();
  for (const [path, targets] of importGraph(sources)) {
    // Entries of the library pass on what the folders below them have, and nothing imports them.
    if (!path.startsWith("src/") || matchesAny(libraryEntries, path)) continue;
    const from = posix.dirname(path);
    const reached = edges.get(from) ?? new Set();
    edges.set(from, reached);
    for (const target of targets.map((one) => posix.dirname(one))) {
      if (target !== from) reached.add(target);
    }
  }
  return circlesOf(new Map([...edges].map(([from, reached]) => [from, [...reached]])));
}

function circlesOf(graph: ReadonlyMap<string, readonly string[]>): Violation[] {
  const found: Violation[] = [];
  const reported = new Set<string>();
  for (const path of graph.keys()) {
    if (reported.has(path)) continue;
    const circle = shortestCircle(graph, path);
    if (circle === undefined) continue;
    for (const one of circle) reported.add(one);
    const way = [...circle, path].join(" -> ");
    found.push({ path, line: 1, message: `is part of an import cycle: ${way}` });
  }
  return found;
}

/** The files of the project that each file imports, in the order of their mention. */
export function importGraph(sources: readonly Source[]): ReadonlyMap<string, readonly string[]> {
  return new Map(
    sources.map(({ path, imports }) => [
      path,
      imports.map(({ specifier }) => importTarget(path, specifier).path),
    ]),
  );
}

function shortestCircle(
  graph: ReadonlyMap<string, readonly string[]>,
  start: string,
): readonly string[] | undefined {
  const ways: (readonly string[])[] = [[start]];
  const seen = new Set<string>();
  for (const way of ways) {
    for (const next of graph.get(way[way.length - 1] ?? "") ?? []) {
      if (next === start) return way;
      if (seen.has(next)) continue;
      seen.add(next);
      ways.push([...way, next]);
    }
  }
  return undefined;
}
