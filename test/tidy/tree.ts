import { posix } from "node:path";
import { matchesAny } from "./paths.js";
import { folderFilesMax, topLevel, unmirroredFolders, untracked } from "./rules.js";
import type { Violation } from "./source.js";

/** Things at the top that the project's layout does not name. */
export function checkTopLevel(tracked: readonly string[]): Violation[] {
  const names = new Set(tracked.map((path) => path.replace(/\/.*/, "")));
  return [...names]
    .filter((name) => !matchesAny(topLevel, name))
    .map((path) => ({ path, line: 1, message: "does not belong at the top level; move it" }));
}

/** What is made by the build, and was committed all the same. */
export function checkTracked(tracked: readonly string[]): Violation[] {
  return tracked
    .filter((path) => matchesAny(untracked, path))
    .map((path) => ({ path, line: 1, message: "is made by the build; take it out of git" }));
}

/** Folders of src that hold more files than a reader takes in. */
export function checkFolderSizes(paths: readonly string[]): Violation[] {
  return [...foldersOf(paths)].flatMap(([path, fileCount]) => {
    if (fileCount <= folderFilesMax) return [];
    const message = `holds ${fileCount} files, at most ${folderFilesMax}; part it by what they do`;
    return [{ path, line: 1, message }];
  });
}

/** Lines of the map, at most: details stand in docs/internals. */
const architectureLinesMax = 250;

/** Folders of src that the map of the architecture does not have, and those that are gone. */
export function checkFolderIndex(paths: readonly string[], architecture: string): Violation[] {
  const folders = foldersOf(paths);
  const rows = architecture.matchAll(/^\| `(src\/[\w/-]+)(?:\{([\w,/-]+)\})?\/` \|/gm);
  // `src/cli/{simulate,recommend}/` is a row of two.
  const indexed = new Set(
    [...rows].flatMap(([, start = "", names]) =>
      names === undefined ? [start] : names.split(",").map((name) => start + name),
    ),
  );
  const missing = [...folders.keys()].filter((folder) => !indexed.has(folder));
  const gone = [...indexed].filter((folder) => folder !== "src/gen" && !folders.has(folder));
  const lineCount = architecture.trimEnd().split("\n").length;
  const message = `has ${lineCount} lines, at most ${architectureLinesMax}`;
  return [
    ...(lineCount > architectureLinesMax ? [{ path: "ARCHITECTURE.md", line: 1, message }] : []),
    ...missing.map((path) => ({ path, line: 1, message: "has no line in ARCHITECTURE.md" })),
    ...gone.map((path) => ({ path, line: 1, message: "is in ARCHITECTURE.md and holds no file" })),
  ];
}

function foldersOf(paths: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const path of paths.filter((one) => one.startsWith("src/"))) {
    const folder = posix.dirname(path);
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  return counts;
}

/**
 * Unit tests without the file of src that they are named after. A second part of the name says
 * which side of the file is tested: `gcra.property.test.ts` is for gcra.ts.
 */
export function checkMirrors(paths: readonly string[]): Violation[] {
  const known = new Set(paths);
  return paths.flatMap((path) => {
    const [, folder = "", name = ""] = /^test\/unit\/(.*\/)?([^./]+)\..*test\.ts$/.exec(path) ?? [];
    if (name === "" || unmirroredFolders.some((one) => folder.startsWith(`${one}/`))) return [];
    const wanted = [".ts", ".mts", ".mjs"].map((ending) => `src/${folder}${name}${ending}`);
    if (wanted.some((one) => known.has(one))) return [];
    return [{ path, line: 1, message: `tests no file: there is no ${wanted[0]}` }];
  });
}

/** A path of one machine, written so that this line is not one. */
const machinePath = /(?<![\w.*)\]}])\/(?:work|home|root|Users)\/[\w.]/;

const registryHost =
  /\b(?:registry\.(?:npmjs|yarnpkg)\.|pypi\.(?:org|python)|files\.pythonhosted\.|proxy\.golang\.)/;

/** What is handed to others to run: what it begins with, they keep. */
const shipped = /^(?:docker-compose\.yml$|Dockerfile$|envoy\/|k8s\/|test\/golden\/generate\/)/;

/** Passwords that are written out, where each could stand; a variable that must be set is none. */
const writtenPasswords: readonly RegExp[] = [
  /(?<!\$\{\w*)(?:password|passwd|secret_key)["']?\s*[:=]\s*["']?(?!\$\{\w+:\?)[^\s"'{}[\]]/i,
  /--(?:requirepass|masterauth)\b["']?[,\s]+["']?(?!\$\{\w+:\?)[^\s"']/,
  /:\/\/[^\s/:@"']*:(?!\$)[^\s/@"']+@/,
  /\bSETUSER\b.* [<>](?!\$)\S/,
  /\bauth=["']?[\w-]*:(?!\$\{\w+:\?)\S/,
];

/** Passwords in what others run: everybody would know them. */
export function checkPasswords(path: string, text: string): Violation[] {
  if (!shipped.test(path)) return [];
  return text.split("\n").flatMap((lineText, i) => {
    if (!writtenPasswords.some((pattern) => pattern.test(lineText))) return [];
    return [
      {
        path,
        line: i + 1,
        message: "a password; take it from a variable that must be set, or a secret",
      },
    ];
  });
}

/** Paths of a machine and hosts of package registries, in any text that is committed. */
export function checkPlaces(path: string, text: string): Violation[] {
  return text.split("\n").flatMap((lineText, i) => {
    const found: Violation[] = [];
    const line = i + 1;
    if (machinePath.test(lineText)) {
      const message = "a path of one machine; make it relative, or find it at run time";
      found.push({ path, line, message });
    }
    if (registryHost.test(lineText)) {
      const message = "a registry's host; leave the choice to the client's configuration";
      found.push({ path, line, message });
    }
    return found;
  });
}
