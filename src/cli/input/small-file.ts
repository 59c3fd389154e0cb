import { closeSync, openSync, readSync } from "node:fs";
import { exitCodes } from "../../app/base/failure.js";
import { readErrorWords } from "../../app/config/policy-files.js";
import { visibleText } from "../../policy/problems/problem.js";
import { CommandFailure } from "../terminal/command-failure.js";

/** Maximum size of a file with a token, a certificate or a key, in bytes. */
export const smallFileBytesMax = 65_536;

/**
 * Reads a small file's text.
 *
 * @throws CommandFailure
 */
export function readSmallFile(path: string): string {
  try {
    const text = readFileUpTo(path, smallFileBytesMax);
    if (text !== undefined) return text;
    throw new CommandFailure(
      exitCodes.failure,
      `${visibleText(path)} has more than ${smallFileBytesMax} bytes, so it is ` +
        "not the expected file.",
    );
  } catch (thrown) {
    if (thrown instanceof CommandFailure) throw thrown;
    const words = visibleText(readErrorWords(thrown));
    throw new CommandFailure(exitCodes.failure, `${visibleText(path)}: ${words}`);
  }
}

/**
 * Reads the text on standard input.
 *
 * @throws CommandFailure if it has more than `smallFileBytesMax` bytes
 */
export async function readSmallInput(): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of process.stdin) {
    chunks.push(Buffer.from(chunk));
    size += chunk.length;
    if (size <= smallFileBytesMax) continue;
    throw new CommandFailure(
      exitCodes.failure,
      `Standard input has more than ${smallFileBytesMax} bytes.`,
    );
  }
  return Buffer.concat(chunks).toString("utf8");
}

/**
 * Reads a file's text; undefined if it has more than `bytesMax` bytes. Devices and pipes have no
 * size, so that the limit is checked while reading.
 *
 * @throws the error of the file system
 */
export function readFileUpTo(path: string, bytesMax: number): string | undefined {
  const file = openSync(path, "r");
  try {
    const bytes = Buffer.allocUnsafe(bytesMax + 1);
    let size = 0;
    for (let read = -1; read !== 0 && size <= bytesMax; size += read) {
      read = readSync(file, bytes, { offset: size, length: bytes.length - size });
    }
    return size > bytesMax ? undefined : bytes.toString("utf8", 0, size);
  } finally {
    closeSync(file);
  }
}
