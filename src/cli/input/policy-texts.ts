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
 * Returns the texts of files and directories, and the version of the policy that they form.
 *
 * @throws CommandFailure if one cannot be read
 */
export async function readPolicyTexts(
  paths: readonly string[],
): Promise<{ readonly sources: PolicyText[]; readonly version: string }> {
  const sources: PolicyText[] = [];
  const versions: string[] = [];
  for (const path of new Set(paths)) {
    const read = await readPolicyFiles(path);
    if (read.kind === "unreadable") {
      throw new CommandFailure(exitCodes.failure, visibleText(read.message));
    }
    sources.push(...read.sources);
    versions.push(read.version);
  }
  return { sources, version: versions.join("+") };
}

/** Texts of policy files, or why they cannot be read. */
type ReadTexts =
  | { readonly kind: "sources"; readonly sources: readonly PolicyText[] }
  | { readonly kind: "unreadable"; readonly message: string };

/** Reads a policy file, the files of a directory, or standard input for `-`. */
export async function readFilesOrInput(path: string, style: PolicyFileStyle): Promise<ReadTexts> {
  if (path !== "-") return readPolicyFiles(path, style);
  try {
    return { kind: "sources", sources: [{ file: "<stdin>", text: readFileSync(0, "utf8") }] };
  } catch (error) {
    const message = `standard input cannot be read: ${readErrorWords(error)}`;
    return { kind: "unreadable", message };
  }
}
