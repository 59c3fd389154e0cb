import { readFileSync } from "node:fs";
import { exitCodes } from "../../app/base/failure.js";
import {
  type PolicyFileStyle,
  readErrorWords,
  readPolicyFiles,
} from "../../app/config/policy-files.js";
import type { PolicyText } from "../../policy/parse.js";
import { visibleText } from "../../policy/problems/problem.js";
import { CommandFailure } from "../terminal/command-failure.js";

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

/** Texts of policy files, or why there are none. */
type ReadTexts =
  | { readonly kind: "sources"; readonly sources: readonly PolicyText[] }
  | { readonly kind: "unreadable"; readonly message: string };

/** Reads a policy file, the files of a directory, or standard input, which `-` stands for. */
export async function readFilesOrInput(path: string, style: PolicyFileStyle): Promise<ReadTexts> {
  if (path !== "-") return readPolicyFiles(path, style);
  try {
    return { kind: "sources", sources: [{ file: "<stdin>", text: readFileSync(0, "utf8") }] };
  } catch (error) {
    const message = `standard input cannot be read: ${readErrorWords(error)}`;
    return { kind: "unreadable", message };
  }
}
