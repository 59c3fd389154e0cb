import type { ParsedNode } from "yaml";
import { quoteText, visibleText } from "../problems/problem.js";
import type { Finding } from "../problems/problem-log.js";
import { Block } from "./block.js";
import type { Field, NodeReader } from "./node-reader.js";
import type { Shape } from "./shapes.js";

/** Returns the place of a definition as text: `policy.yaml:12`. */
export function placeText({ source }: NodeReader, node: ParsedNode): string {
  return `${visibleText(source.file)}:${source.position(node.range[0]).line}`;
}

/** Names that a policy may define only once, across all its files. */
export class DefinedNames {
  readonly #places = new Map<string, string>();
  readonly #id: Finding["id"];
  readonly #claim: (name: string) => string;

  /** @param claim start of the message for a second definition, up to the place of the first */
  constructor(id: Finding["id"], claim: (name: string) => string) {
    this.#id = id;
    this.#claim = claim;
  }

  /** All defined names, whether or not the rest of their definition is valid. */
  get names(): readonly string[] {
    return [...this.#places.keys()];
  }

  /** Defines a name at a place. Returns false, and reports it, if the name is defined already. */
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

/** Properties of a list of maps. */
interface ListedMaps {
  /** What belongs in the list, for messages. */
  readonly expected: string;
  readonly shape: Shape;
  /** Maximum count, for messages: `128 quotas`. */
  readonly most: string;
  /** Reads one map; false if the maximum count is reached. */
  add(block: Block): boolean;
}

/** Reads a list of maps. A map beyond the maximum count is reported, and ends the list. */
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
