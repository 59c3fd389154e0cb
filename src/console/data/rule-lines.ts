import type { DescriptorEntry } from "../../core/limits/key.js";

/** The lines of a text, from 1, both included. */
export interface LineRange {
  readonly first: number;
  readonly last: number;
}

/**
 * Where a rule stands in a policy: found by indentation and by the keys of its path, as people and
 * `headgate fmt` write policies. Undefined where it is written otherwise.
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

/** The shallowest entry with this key below the first line of a block. */
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

/** The `value` of the entry that begins a block: in its first line, or in the block's own lines. */
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

/** The line after a block: the first one that is not indented deeper than its beginning. */
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

/** The scalar of a key in a line, in block or flow style; undefined where the key is not there. */
function scalarOf(line: string, key: string): string | undefined {
  const found = new RegExp(
    `(?:^\\s*(?:-\\s+)?|[{,]\\s*)${key}:\\s*("(?:[^"\\\\]|\\\\.)*"|'(?:[^']|'')*'|[^,}#]*)`,
  ).exec(line);
  const scalar = found?.[1]?.trim();
  if (scalar === undefined) return undefined;
  return scalar.replace(/^(["'])(.*)\1$/s, "$2");
}
