import { readFileSync, statSync } from "node:fs";
import { exitCodes } from "../../app/base/failure.js";
import { readErrorWords } from "../../app/config/policy-files.js";
import { visibleText } from "../../policy/problems/problem.js";
import { CommandFailure } from "../terminal/command-failure.js";

/** The largest file of a token, a certificate or a key, in bytes. */
export const smallFileBytesMax = 65_536;

/**
 * A small file's text.
 *
 * @throws CommandFailure
 */
export function readSmallFile(path: string): string {
  try {
    if (statSync(path).size > smallFileBytesMax) {
      throw new CommandFailure(
        exitCodes.failure,
        `${visibleText(path)} has more than ${smallFileBytesMax} bytes, so it is ` +
          "not the expected file.",
      );
    }
    return readFileSync(path, "utf8");
  } catch (thrown) {
    if (thrown instanceof CommandFailure) throw thrown;
    const words = visibleText(readErrorWords(thrown));
    throw new CommandFailure(exitCodes.failure, `${visibleText(path)}: ${words}`);
  }
}
