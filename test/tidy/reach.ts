import { posix } from "node:path";
import { importGraph } from "./imports.js";
import { importTarget, matchesAny, sourcePath } from "./paths.js";
import { entries, libraryEntries, silentPackages } from "./rules.js";
import { type Source, type Violation, visit } from "./source.js";

/** What package.json says, and which programs each package of `node_modules` brings. */
export interface Manifest {
  /** Packages that src imports and the build puts into the program. */
  readonly bundled: readonly string[];
  /** Packages that users of the library bring, and that the library imports. */
  readonly peers: readonly string[];
  /** All others. */
  readonly devDependencies: readonly string[];
  /** `scripts` and `bin`, as one text. */
  readonly commands: string;
  /** The files that configure tools, as one text. */
  readonly configuration: string;
  readonly programsOf: (name: string) => readonly string[];
}

/** Files that no program and no test reaches. */
export function checkUnreachedFiles(
  sources: readonly Source[],
  { commands }: Pick<Manifest, "commands">,
): Violation[] {
  const graph = importGraph(sources);
  const byPath = new Map(sources.map((source) => [source.path, source]));
  const reached = new Set<string>();
  const waiting = [...byPath.keys()].filter((path) =>
    matchesAny([...entries, ...libraryEntries], path),
  );
  waiting.push(...pathsIn(commands).map(sourcePath));
  for (const path of waiting) {
    const source = byPath.get(path);
    if (source === undefined || reached.has(path)) continue;
    reached.add(path);
    waiting.push(...(graph.get(path) ?? []), ...namedCode(source));
    // Types of plain JavaScript stand beside it.
    waiting.push(path.replace(/\.mjs$/, ".d.mts"));
  }
  const message = "nothing reaches this file: no program, no test; use it or delete it";
  return [...byPath.keys()]
    .filter((path) => !reached.has(path))
    .map((path) => ({ path, line: 1, message }));
}

/** Code that a string names, from here or from the top: workers and child processes. */
export function namedCode(source: Source): readonly string[] {
  return fromHereAndTop(source, textsOf(source).flatMap(pathsIn)).map(sourcePath);
}

/** Paths that a whole string may be, from here or from the top; a folder's end without a slash. */
export function namedPaths(source: Source): readonly string[] {
  const texts = textsOf(source).filter((text) => /^[\w./-]*\w[\w./-]*$/.test(text));
  return fromHereAndTop(source, texts).map((path) => path.replace(/\/$/, ""));
}

function fromHereAndTop(source: Source, paths: readonly string[]): readonly string[] {
  const folder = posix.dirname(source.path);
  return paths.flatMap((path) => [posix.join(folder, path), posix.normalize(path)]);
}

/** All texts of literals. */
function textsOf(source: Source): readonly string[] {
  const found: string[] = [];
  visit(source, {
    Literal: ({ value }) => {
      if (typeof value === "string") found.push(value);
    },
    TemplateElement: ({ value }) => void found.push(value.raw),
  });
  return found;
}

function pathsIn(text: string): readonly string[] {
  return text.match(/[\w./-]+\.(?:[cm]?[jt]s|tsx)\b/g) ?? [];
}

/** Exports of src that no other file takes. A type may also be part of another export here. */
export function checkUnusedExports(sources: readonly Source[]): Violation[] {
  const taken = new Map<string, Set<string>>();
  for (const { path, imports } of sources) {
    for (const { specifier, names } of imports) {
      const target = importTarget(path, specifier).path;
      const known = taken.get(target) ?? new Set<string>();
      for (const name of names) known.add(name);
      taken.set(target, known);
    }
  }
  return sources.flatMap((source) => {
    const { path, exports } = source;
    if (!path.startsWith("src/") || path.endsWith(".d.mts")) return [];
    if (matchesAny(libraryEntries, path)) return [];
    const names = taken.get(path);
    const uses = usesOfNames(source);
    return exports.flatMap(({ name, kind, line }) => {
      if (names?.has(name) === true || names?.has("*") === true) return [];
      // One use is the declaration itself.
      if (kind === "type" && (uses.get(name) ?? 0) > 1) return [];
      const message = `nothing imports ${name}; do not export it, or delete it`;
      return [{ path, line, message }];
    });
  });
}

function usesOfNames(source: Source): ReadonlyMap<string, number> {
  const uses = new Map<string, number>();
  visit(source, { Identifier: ({ name }) => void uses.set(name, (uses.get(name) ?? 0) + 1) });
  return uses;
}

/** Packages that are imported but not listed, listed but not used, or listed in the wrong place. */
export function checkPackages(sources: readonly Source[], manifest: Manifest): Violation[] {
  const path = "package.json";
  const found: Violation[] = [];
  const inSource = new Set<string>();
  const inTests = new Set<string>();
  const { bundled, devDependencies, peers } = manifest;
  for (const source of sources) {
    // What builds the program is no part of it.
    const isSource = source.path.startsWith("src/") && !source.path.endsWith(".mjs");
    for (const { specifier, line } of source.imports) {
      const target = importTarget(source.path, specifier);
      if (target.kind !== "package") continue;
      const name = target.path.slice("npm:".length);
      (isSource ? inSource : inTests).add(name);
      const place = placeOfPackages(source.path, isSource);
      const listed = { bundled, peerDependencies: peers, devDependencies }[place];
      if (listed.includes(name) || (!isSource && bundled.includes(name))) continue;
      found.push({ path: source.path, line, message: `${name} is not in ${place}` });
    }
    if (isSource) for (const text of textsOf(source)) inSource.add(text);
  }
  for (const name of bundled) {
    if (inSource.has(name)) continue;
    const message = `nothing in src imports ${name}; take it out of bundled`;
    found.push({ path, line: 1, message });
  }
  for (const name of devDependencies) {
    if (inSource.has(name) || inTests.has(name) || isNamed(name, manifest)) continue;
    if (silentPackages.some((one) => one.name === name)) continue;
    const message = `nothing uses ${name}: no import, script or configuration; remove it`;
    found.push({ path, line: 1, message });
  }
  return found;
}

function placeOfPackages(path: string, isSource: boolean) {
  if (path.startsWith("src/client/")) return "peerDependencies";
  return isSource ? "bundled" : "devDependencies";
}

/** The compiler's configuration names `@types/node` as `node`. */
function isNamed(name: string, { commands, configuration, programsOf }: Manifest): boolean {
  const text = `${commands}\n${configuration}`;
  const names = [name, name.replace(/^@types\//, ""), ...programsOf(name)];
  return names.some((one) => new RegExp(`(?<![\\w@/-])${one}(?![\\w-])`).test(text));
}
