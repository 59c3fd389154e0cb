import { type ParseProblems, ProblemLog } from "../problems/problem-log.js";
import { SourceText } from "../problems/source-text.js";
import { findAliasTargets } from "./aliases.js";
import { Block } from "./block.js";
import { NodeReader } from "./node-reader.js";
import type { Shape } from "./shapes.js";
import { readYaml } from "./yaml-text.js";

/** A kind of file that is a single block, such as a scenario. */
export interface BlockFile<T> {
  readonly shape: Shape;
  /** Returns the value of the block; undefined after it has reported a problem. */
  readonly read: (block: Block) => T | undefined;
  /** What an empty file lacks, for messages: "scenario". */
  readonly content: string;
  /** What an empty file should contain, for messages: "services: and callers:". */
  readonly expected: string;
}

/** Reads such a file: returns its value, or all problems at once. */
export function readBlockFile<T>(
  given: { readonly file: string; readonly text: string },
  file: BlockFile<T>,
): { readonly kind: "value"; readonly value: T } | ParseProblems {
  const log = new ProblemLog();
  const value = readSource(new SourceText(given, 0), file, log);
  if (log.count > 0 || value === undefined) return { kind: "problems", ...log.found() };
  return { kind: "value", value };
}

function readSource<T>(
  source: SourceText,
  { shape, read, content, expected }: BlockFile<T>,
  log: ProblemLog,
): T | undefined {
  const yaml = readYaml(source, log);
  if (yaml.kind === "unreadable") return undefined;
  if (yaml.kind === "empty") {
    const message = `the file contains no ${content}`;
    log.report(source, { start: 0, end: 1 }, { id: "HG110", message, expected });
    return undefined;
  }
  const targets = yaml.hasAliases ? findAliasTargets(yaml.node, source, log) : new Map();
  if (targets === undefined) return undefined;
  const block = Block.at(new NodeReader(source, log, targets), yaml.node, shape);
  return block && read(block);
}
