import { randomBytes } from "node:crypto";
import { realpath, rename, rm, stat, writeFile } from "node:fs/promises";

/**
 * Replaces a file's text, or makes the file: whoever reads it sees the old text or the new one. A
 * link stays one, and a file keeps its rights. Throws what the file system does.
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
    throw error;
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
