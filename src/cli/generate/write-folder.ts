import { lstat, mkdir, rename, rm, rmdir, unlink, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { FileStep } from "./generated-folder.js";

/** Steps, and the list of files after them. */
interface FolderChange {
  readonly steps: readonly FileStep[];
  readonly list: { readonly name: string; readonly text: string };
}

/**
 * Performs all steps in a folder, or none. It first writes texts to temporary files next to their
 * destinations, and then renames them. If one step fails, it restores the previous files. Unchanged
 * files are not touched. If the process is killed, some steps may be missing; each file is complete
 * at any time, and running the same command again completes them.
 *
 * Throws the error of the file system; nothing has changed then.
 */
export async function writeFolder(folder: string, change: FolderChange): Promise<void> {
  const undo: (() => Promise<unknown>)[] = [];
  try {
    const prepared: (() => Promise<void>)[] = [];
    for (const step of change.steps) {
      if (step.kind === "keep") continue;
      prepared.push(await prepareStep(folder, step, undo));
    }
    const { name, text } = change.list;
    const listTemporary = await prepareFile(join(folder, name), text, undo);
    for (const act of prepared) await act();
    await rename(listTemporary, join(folder, name));
  } catch (error) {
    for (const back of undo.reverse()) await back().catch(() => undefined);
    throw error;
  }
  await removeEmptied(folder, change.steps);
}

/** Prepares a step. Returns a function that performs it. */
async function prepareStep(
  folder: string,
  step: Exclude<FileStep, { kind: "keep" }>,
  undo: (() => Promise<unknown>)[],
): Promise<() => Promise<void>> {
  const path = join(folder, step.path);
  const putBack = (oldText: string) => async () => {
    const temporary = temporaryName(path);
    await writeFile(temporary, oldText);
    await rename(temporary, path);
  };
  if (step.kind === "remove") {
    return async () => {
      await unlink(path);
      undo.push(putBack(step.oldText));
    };
  }
  const temporary = await prepareFile(path, step.text, undo);
  return async () => {
    await rename(temporary, path);
    undo.push(step.kind === "add" ? () => unlink(path) : putBack(step.oldText));
  };
}

/** Writes a text next to its destination, and creates the required folders. */
async function prepareFile(
  path: string,
  text: string,
  undo: (() => Promise<unknown>)[],
): Promise<string> {
  await makeFolders(dirname(path), undo);
  const temporary = temporaryName(path);
  undo.push(() => rm(temporary, { force: true }));
  // Removes the leftover file of an earlier process.
  await rm(temporary, { force: true });
  await writeFile(temporary, text, { flag: "wx" });
  return temporary;
}

/**
 * Creates a folder and its parents. Node's own `recursive` never ends on a file system that lacks
 * the folder and does not allow creating it, such as /proc.
 */
async function makeFolders(folder: string, undo: (() => Promise<unknown>)[]): Promise<void> {
  const missing: string[] = [];
  for (let at = resolve(folder); !(await isThere(at)); at = dirname(at)) missing.push(at);
  for (const at of missing.toReversed()) {
    await mkdir(at);
    undo.push(() => rmdir(at));
  }
}

async function isThere(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}

/** Returns a hidden name without a suffix that tools read from a folder. */
function temporaryName(path: string): string {
  return join(dirname(path), `.headgate-${process.pid}-${path.split("/").at(-1)}.tmp`);
}

/** Removes folders that lost their last file. */
async function removeEmptied(folder: string, steps: readonly FileStep[]): Promise<void> {
  for (const step of steps) {
    if (step.kind !== "remove") continue;
    const names = step.path.split("/").slice(0, -1);
    for (let count = names.length; count > 0; count -= 1) {
      const isEmpty = await rmdir(join(folder, ...names.slice(0, count))).then(
        () => true,
        () => false,
      );
      if (!isEmpty) break;
    }
  }
}
