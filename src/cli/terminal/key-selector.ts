import { readEntries } from "../../core/limits/descriptor-text.js";
import type { DescriptorEntry } from "../../core/limits/key.js";
import { quoteText } from "../../policy/problems/problem.js";
import { usageFailure } from "./command-failure.js";

/** Maximum number of entries in a descriptor. */
export const selectedEntriesMax = 32;

/** Format of a descriptor, for the help of commands. */
export const entriesHelp = `A descriptor is written as key=value,key=value, the outermost first;
\\, stands for a comma in it, \\= for an equals sign in a key, \\\\ for a backslash.`;

/**
 * Reads a descriptor from a command line.
 *
 * @throws CommandFailure
 */
export function parseEntries(text: string): readonly DescriptorEntry[] {
  const entries = readEntries(text);
  if (entries === undefined) {
    throw usageFailure(`${quoteText(text)} has an entry without a key; write plan=free,user=ann`);
  }
  if (entries.length > selectedEntriesMax) {
    throw usageFailure(`a descriptor has at most ${selectedEntriesMax} entries`);
  }
  return entries;
}
