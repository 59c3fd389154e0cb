import type { ParsedNode } from "yaml";
import { quoteText, visibleText } from "../problems/problem.js";
import type { Finding } from "../problems/problem-log.js";
import { Block } from "./block.js";
import type { Field, NodeReader } from "./node-reader.js";
import type { Shape } from "./shapes.js";

/** Where something is defined, in words: `policy.yaml:12`. */
export function placeText({ source }: NodeReader, node: ParsedNode): string {
  return `${visibleText(source.file)}:${source.position(node.range[0]).line}`;
}

/** Names that one policy defines once each, over all its files. */
export class DefinedNames {
  readonly #places = new Map<string, string>();
  readonly #id: Finding["id"];
  readonly #claim: (name: string) => string;

  /** @param claim what a second definition is told, up to the place of the first one */
  constructor(id: Finding["id"], claim: (name: string) => string) {
    this.#id = id;
    this.#claim = claim;
  }

  /** All of them, right or wrong for the rest. */
  get names(): readonly string[] {
    return [...this.#places.keys()];
  }

  /** A name is defined at a place; false, and reported, for one that is defined already. */
  define(name: string, node: ParsedNode, reader: NodeReader): boolean {
    const known = this.#places.get(name);
    if (known === undefined) {
      this.#places.set(name, placeText(reader, node));
      return true;
    }
    reader.report(node, { id: this.#id, message: `${this.#claim(quoteText(name))} in ${known}` });
    return false;
  }
}

/** A list of maps, as its reader knows it. */
interface ListedMaps {
  /** What belongs there, for messages. */
  readonly expected: string;
  readonly shape: Shape;
  /** For messages: `128 quotas`. */
  readonly most: string;
  /** Reads one; false where there are as many already as there may be. */
  add(block: Block): boolean;
}

/** Reads a list of maps; one beyond the most is reported, and ends it. */
export function readMaps(
  reader: NodeReader,
  written: Field,
  { expected, shape, most, add }: ListedMaps,
): void {
  for (const item of reader.readList(written, expected) ?? []) {
    const block = Block.at(reader, item, shape);
    if (block === undefined || add(block)) continue;
    const message = `a policy cannot hold more than ${most}`;
    reader.report(item, { id: "HG160", message });
    return;
  }
}
