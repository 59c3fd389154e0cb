import type { DescriptorEntry } from "../../core/limits/key.js";
import { quoteText } from "../../policy/problems/problem.js";
import { usageFailure } from "./command-failure.js";

/** The most entries of a descriptor. */
export const selectedEntriesMax = 32;

/** How a descriptor is written, for the help of commands. */
export const entriesHelp = `A descriptor is written as key=value,key=value, the outermost first;
\\, stands for a comma in it, \\= for an equals sign in a key, \\\\ for a backslash.`;

/**
 * Reads a descriptor as it stands on a command line.
 *
 * Example: `plan=free,user=ann`; a key without `=` has the empty value.
 *
 * @throws CommandFailure
 */
export function parseEntries(text: string): readonly DescriptorEntry[] {
  const entries: DescriptorEntry[] = [];
  let key: string | undefined;
  let word = "";
  const end = (): void => {
    const entry = key === undefined ? { key: word, value: "" } : { key, value: word };
    if (entry.key === "") {
      throw usageFailure(`${quoteText(text)} has an entry without a key; write plan=free,user=ann`);
    }
    entries.push(entry);
    key = undefined;
    word = "";
  };
  for (let i = 0; i < text.length; i += 1) {
    const character = text.charAt(i);
    if (character === "\\" && /[,=\\]/.test(text.charAt(i + 1))) {
      i += 1;
      word += text.charAt(i);
    } else if (character === ",") end();
    else if (character === "=" && key === undefined) {
      key = word;
      word = "";
    } else word += character;
  }
  end();
  if (entries.length > selectedEntriesMax) {
    throw usageFailure(`a descriptor has at most ${selectedEntriesMax} entries`);
  }
  return entries;
}

/** Writes it so that `parseEntries` reads the same. */
export function formatEntries(entries: readonly DescriptorEntry[]): string {
  return entries
    .map(({ key, value }) => {
      const name = key.replaceAll(/[,=\\]/g, "\\$&");
      return value === "" ? name : `${name}=${value.replaceAll(/[,\\]/g, "\\$&")}`;
    })
    .join(",");
}
