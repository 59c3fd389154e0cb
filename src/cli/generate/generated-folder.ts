import { createHash } from "node:crypto";
import { lstat, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { readErrorWords } from "../../app/config/policy-files.js";
import { isSafePath } from "../../generate/base/document-path.js";
import { isMarkedGenerated } from "../../generate/base/render.js";
import type { Target } from "../../generate/targets.js";

/** A file that the folder must contain. */
export interface WantedFile {
  /** Path below the folder, with `/`. */
  readonly path: string;
  readonly text: string;
}

/** Required change to one file of a folder. */
export type FileStep =
  | { readonly kind: "keep"; readonly path: string; readonly text: string }
  | { readonly kind: "add"; readonly path: string; readonly text: string }
  | {
      readonly kind: "change";
      readonly path: string;
      readonly text: string;
      readonly oldText: string;
    }
  /** It was generated before, and is no longer. */
  | { readonly kind: "remove"; readonly path: string; readonly oldText: string };

/** Required changes to a folder. */
interface FolderPlan {
  /** In the order of their paths. */
  readonly steps: readonly FileStep[];
  /** Sentences about files that were not generated, or were changed since. */
  readonly foreign: readonly string[];
  /** Sentences about paths that cannot be written. */
  readonly blocked: readonly string[];
}

/** Maximum number of files in a folder's list. */
export const listedFilesMax = 10_000;

/** Returns the name of a target's list of generated files, in `sha256sum --check` format. */
export function listName(target: Target): string {
  return `.headgate-${target}.sha256`;
}

/** Compares the wanted files with the existing ones, without changing anything. */
export async function planFolder(
  folder: string,
  target: Target,
  wanted: readonly WantedFile[],
): Promise<FolderPlan> {
  const why = await whyNoFolder(folder);
  if (why !== undefined) return { steps: [], foreign: [], blocked: [why] };
  const listed = await readList(folder, target);
  const steps: FileStep[] = [];
  const foreign: string[] = [];
  const blocked: string[] = [];
  for (const { path, text } of wanted) {
    const found = await lookAt(folder, path);
    if (found.kind === "blocked") blocked.push(found.why);
    else if (found.kind === "missing") steps.push({ kind: "add", path, text });
    else if (found.text === text) steps.push({ kind: "keep", path, text });
    else {
      const why = whyForeign(path, found, listed.get(path));
      if (why !== undefined) foreign.push(why);
      steps.push({ kind: "change", path, text, oldText: found.text });
    }
  }
  const known = new Set(wanted.map(({ path }) => path));
  for (const [path, hash] of listed) {
    if (known.has(path)) continue;
    const found = await lookAt(folder, path);
    if (found.kind === "blocked") blocked.push(found.why);
    if (found.kind !== "file") continue;
    const why = whyForeign(path, found, hash);
    if (why !== undefined) foreign.push(why);
    steps.push({ kind: "remove", path, oldText: found.text });
  }
  steps.sort((a, b) => (a.path < b.path ? -1 : 1));
  return { steps, foreign, blocked };
}

/** Returns why a folder cannot be used; undefined if it exists or can be created. */
async function whyNoFolder(folder: string): Promise<string | undefined> {
  try {
    return (await stat(folder)).isDirectory() ? undefined : `${folder} is not a folder`;
  } catch (error) {
    if (Reflect.get(Object(error), "code") === "ENOENT") return undefined;
    return `${folder} cannot be read: ${readErrorWords(error)}`;
  }
}

/** Returns the list as text, sorted by path. */
export function renderList(files: readonly WantedFile[]): string {
  const lines = files.map(({ path, text }) => `${hashOf(text)}  ${path}\n`);
  return lines.toSorted((a, b) => (a.slice(66) < b.slice(66) ? -1 : 1)).join("");
}

type Found =
  | { readonly kind: "missing" }
  | { readonly kind: "file"; readonly text: string; readonly isLink: boolean }
  | { readonly kind: "blocked"; readonly why: string };

/** Reads what exists at a path, without following links on the way. */
async function lookAt(folder: string, path: string): Promise<Found> {
  const names = path.split("/");
  for (let depth = 1; depth <= names.length; depth += 1) {
    const below = names.slice(0, depth).join("/");
    const isLast = depth === names.length;
    try {
      const stats = await lstat(join(folder, below));
      if (isLast && stats.isSymbolicLink()) return { kind: "file", text: "", isLink: true };
      if (isLast && stats.isFile()) {
        return { kind: "file", text: await readFile(join(folder, below), "utf8"), isLink: false };
      }
      if (!isLast && stats.isDirectory()) continue;
      const what = stats.isSymbolicLink()
        ? "is a link"
        : isLast
          ? "is not a file"
          : "is not a folder";
      return { kind: "blocked", why: `${below} ${what}` };
    } catch (error) {
      if (Reflect.get(Object(error), "code") === "ENOENT") return { kind: "missing" };
      return { kind: "blocked", why: `${below} cannot be read: ${readErrorWords(error)}` };
    }
  }
  return { kind: "missing" };
}

/** Returns why a file must be kept; undefined if it was generated and not changed since. */
function whyForeign(
  path: string,
  { text, isLink }: Found & { readonly kind: "file" },
  hash: string | undefined,
): string | undefined {
  if (isLink) return `${path} is a link, not a generated file`;
  if (hash === undefined) {
    // Without an entry in the list, the first lines of the file show whether it was generated.
    return isMarkedGenerated(text) ? undefined : `${path} was not generated`;
  }
  return hash === hashOf(text) ? undefined : `${path} was changed since it was generated`;
}

/** Reads paths and hashes of the files generated before; empty if there are none. */
async function readList(folder: string, target: Target): Promise<ReadonlyMap<string, string>> {
  const found = await lookAt(folder, listName(target));
  const listed = new Map<string, string>();
  if (found.kind !== "file") return listed;
  for (const line of found.text.split("\n").slice(0, listedFilesMax)) {
    const [, hash, path] = /^([0-9a-f]{64}) {2}(.+)$/.exec(line) ?? [];
    // A manipulated list must not cause the removal of a file outside the folder.
    if (hash !== undefined && path !== undefined && isSafePath(path)) listed.set(path, hash);
  }
  return listed;
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
