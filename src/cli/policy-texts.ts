import { exitCodes } from "../app/failure.js";
import { readPolicyFiles } from "../app/policy-files.js";
import { visibleText } from "../policy/problem.js";
import { CommandFailure } from "./admin-errors.js";

/**
 * The texts of policy files and directories, to be sent as they are.
 *
 * @throws CommandFailure where one cannot be read
 */
export async function readPolicyTexts(
  paths: readonly string[],
): Promise<{ file: string; text: string }[]> {
  const texts: { file: string; text: string }[] = [];
  for (const path of new Set(paths)) {
    const read = await readPolicyFiles(path);
    if (read.kind === "unreadable") {
      throw new CommandFailure(exitCodes.failure, visibleText(read.message));
    }
    texts.push(...read.sources.map(({ file, text }) => ({ file, text })));
  }
  return texts;
}
