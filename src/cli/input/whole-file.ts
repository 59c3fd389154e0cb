import { randomBytes } from "node:crypto";
import { constants, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { exitCodes } from "../../app/base/failure.js";
import { readErrorWords } from "../../app/config/policy-files.js";
import { visibleText } from "../../policy/problems/problem.js";
import { CommandFailure } from "../terminal/command-failure.js";

/**
 * Replaces a file's text, or creates the file. Readers see either the old text or the new one. A
 * link remains a link, and a file keeps its permissions.
 *
 * @throws CommandFailure if it cannot be written
 */
export async function writeWholeFile(path: string, text: string): Promise<void> {
  await withTemporary(path, async ({ temporary, target, mode }) => {
    await writeFile(temporary, text, { flag: "wx", ...(mode !== undefined && { mode }) });
    await rename(temporary, target);
  });
}

/**
 * Checks before long work whether a file can be written afterwards.
 *
 * @throws CommandFailure if it cannot
 */
export async function checkWritable(path: string): Promise<void> {
  await withTemporary(path, async ({ temporary, mode = 0 }) => {
    await writeFile(temporary, "", { flag: "wx" });
    await rm(temporary);
    // An existing path can be replaced unless it is a folder.
    const isFolder = (mode & constants.S_IFMT) === constants.S_IFDIR;
    if (isFolder) throw Object.assign(new Error("a folder"), { code: "EISDIR" });
  });
}

interface Place {
  readonly temporary: string;
  readonly target: string;
  /** Mode of the existing file. */
  readonly mode: number | undefined;
}

async function withTemporary(path: string, write: (place: Place) => Promise<void>): Promise<void> {
  const known = await existing(path);
  const target = known?.path ?? path;
  const temporary = `${target}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    await write({ temporary, target, mode: known?.mode });
  } catch (error) {
    await rm(temporary, { force: true });
    const words = readErrorWords(error);
    throw new CommandFailure(exitCodes.failure, `${visibleText(path)} cannot be written: ${words}`);
  }
}

async function existing(path: string): Promise<{ path: string; mode: number } | undefined> {
  try {
    const real = await realpath(path);
    return { path: real, mode: (await stat(real)).mode };
  } catch {
    return undefined;
  }
}
