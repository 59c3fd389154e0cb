import type { DescriptorEntry } from "../../core/limits/key.js";

/** A range of lines in a text, from 1, both inclusive. */
export interface LineRange {
  readonly first: number;
  readonly last: number;
}

/**
 * Finds the lines of a rule in a policy, by indentation and by the keys of its path, as people and
 * `headgate fmt` write policies. Undefined if it is written in another way.
 */
export function findRuleLines(
  text: string,
  domain: string,
  path: readonly DescriptorEntry[],
): LineRange | undefined {
  const lines = text.split("\n");
  const domainAt = lines.findIndex((line) => scalarOf(line, "domain") === domain);
  if (domainAt < 0) return undefined;
  const outermost = endOfBlock(lines, domainAt);
  let range = { from: domainAt, to: outermost };
  for (const step of path) {
    const found = findStep(lines, range, step);
    if (found === undefined) return undefined;
    range = found;
  }
  return { first: range.from + 1, last: range.to };
}

interface Block {
  readonly from: number;
  readonly to: number;
}

/** Returns the shallowest entry with this key below the first line of a block. */
function findStep(
  lines: readonly string[],
  { from, to }: Block,
  { key, value }: DescriptorEntry,
): Block | undefined {
  let best: Block | undefined;
  for (let i = from + 1; i < to; i += 1) {
    const line = lines[i] ?? "";
    if (scalarOf(line, "key") !== key) continue;
    const block = { from: i, to: endOfBlock(lines, i) };
    if (valueIn(lines, block) !== value) continue;
    if (best === undefined || indentOf(line) < indentOf(lines[best.from] ?? "")) best = block;
  }
  return best;
}

/** Returns the `value` of the entry that starts a block, from its first line or its own lines. */
function valueIn(lines: readonly string[], { from, to }: Block): string {
  const first = lines[from] ?? "";
  const inline = scalarOf(first, "value");
  if (inline !== undefined) return inline;
  const indent = indentOf(first) + (/^\s*-\s/.test(first) ? 2 : 0);
  for (let i = from + 1; i < to; i += 1) {
    const line = lines[i] ?? "";
    const found = scalarOf(line, "value");
    if (found !== undefined && indentOf(line) === indent) return found;
  }
  return "";
}

/** Returns the line after a block: the first one that is not indented more than its start. */
function endOfBlock(lines: readonly string[], from: number): number {
  const first = lines[from] ?? "";
  const isItem = /^\s*-\s/.test(first);
  const indent = indentOf(first);
  let end = from + 1;
  for (let i = from + 1; i < lines.length; i += 1) {
    const line = lines[i] ?? "";
    if (/^\s*(?:#.*)?$/.test(line)) continue;
    const depth = indentOf(line);
    if (depth < indent || (depth === indent && (isItem || /^\s*-\s/.test(line)))) break;
    end = i + 1;
  }
  return end;
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}

/** Returns a key's scalar in a line, in block or flow style; undefined if the key is missing. */
function scalarOf(line: string, key: string): string | undefined {
  const found = new RegExp(
    `(?:^\\s*(?:-\\s+)?|[{,]\\s*)${key}:\\s*("(?:[^"\\\\]|\\\\.)*"|'(?:[^']|'')*'|[^,}#]*)`,
  ).exec(line);
  const scalar = found?.[1]?.trim();
  if (scalar === undefined) return undefined;
  return scalar.replace(/^(["'])(.*)\1$/s, "$2");
}
