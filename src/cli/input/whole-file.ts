import { randomBytes } from "node:crypto";
import { realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { exitCodes } from "../../app/base/failure.js";
import { readErrorWords } from "../../app/config/policy-files.js";
import { visibleText } from "../../policy/problems/problem.js";
import { CommandFailure } from "../terminal/command-failure.js";

/**
 * Replaces a file's text, or makes the file: whoever reads it sees the old text or the new one. A
 * link stays one, and a file keeps its rights.
 *
 * @throws CommandFailure where it cannot be written
 */
export async function writeWholeFile(path: string, text: string): Promise<void> {
  const known = await existing(path);
  const target = known?.path ?? path;
  const temporary = `${target}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    await writeFile(temporary, text, { flag: "wx", ...(known && { mode: known.mode }) });
    await rename(temporary, target);
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
