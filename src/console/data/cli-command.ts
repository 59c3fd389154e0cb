import { formatEntries } from "../../core/limits/descriptor-text.js";
import type { DescriptorEntry } from "../../core/limits/key.js";

/** Returns a command line that a POSIX shell splits into these words. */
export function writeCommand(words: readonly string[]): string {
  return words.map(quoteWord).join(" ");
}

function quoteWord(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  return `'${word.replaceAll("'", "'\\''")}'`;
}

/** The key of a command. */
export interface CommandTarget {
  readonly domain: string;
  readonly entries: readonly DescriptorEntry[];
  readonly limitName?: string;
  readonly isPrefix?: boolean;
}

/** Returns a command about a key, with its flags. */
export function keyCommand(
  names: readonly string[],
  { domain, entries, limitName = "", isPrefix = false }: CommandTarget,
  flags: readonly string[] = [],
): string {
  const limit = limitName === "" ? [] : ["--limit", limitName];
  const prefix = isPrefix ? ["--prefix"] : [];
  const target = [domain, formatEntries(entries)];
  return writeCommand(["headgate", ...names, ...target, ...limit, ...prefix, ...flags]);
}

/** Returns `--reason TEXT`, with a placeholder if there is no reason yet. */
export function reasonFlags(reason: string): readonly string[] {
  return ["--reason", reason === "" ? "..." : reason];
}
