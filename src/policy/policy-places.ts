import { isMap, isScalar, isSeq, type ParsedNode } from "yaml";
import type { Problem } from "./problems/problem.js";
import type { Fields, NodeReader } from "./text/node-reader.js";

/** Place of a setting, as shown in a problem. */
type PolicyPlace = Pick<Problem, "file" | "line" | "column" | "excerpt" | "caret">;

/** A place in a policy, by names. */
export interface PolicyLocation {
  /** Undefined: `proxies`, or the policy as a whole. */
  readonly service: string | undefined;
  /** Names below the service (or `spec`); items of lists by index from 0, or by name. */
  readonly path: readonly string[];
}

/** A value, and the name before it; of an item of a list, the item. */
interface Said {
  readonly key: ParsedNode;
  readonly value: ParsedNode | undefined;
}

/** Finds the places of settings in a policy's files. Searches only on demand. */
export class PolicyPlaces {
  readonly #specs: { readonly reader: NodeReader; readonly spec: Fields }[] = [];

  /** Adds the `spec` of a file. */
  addSpec(reader: NodeReader, spec: Fields): void {
    this.#specs.push({ reader, spec });
  }

  /**
   * Returns the place of a setting, or of the nearest part that contains it if it is left out: at
   * last the service, or `spec`. Undefined if no file has a `spec`.
   */
  find({ service, path }: PolicyLocation): PolicyPlace | undefined {
    if (service === undefined) {
      const found = this.#findNamed(path);
      if (found !== undefined) return found;
    }
    for (const { reader, spec } of this.#specs) {
      const start =
        service === undefined ? spec.byName.get("proxies") : serviceOf(reader, spec, service);
      if (start !== undefined) return placeOf(reader, descend(reader, start, path));
    }
    const [first] = this.#specs;
    return first && placeOf(first.reader, first.spec.node);
  }

  /** Searches below a name of `spec`, preferably in a file that has the next name, too. */
  #findNamed([name = "", ...rest]: readonly string[]): PolicyPlace | undefined {
    const having = this.#specs.filter(({ spec }) => spec.byName.has(name));
    const [next] = rest;
    const best = having.find(({ reader, spec }) => {
      const value = spec.byName.get(name)?.value;
      return next === undefined || (value && step(reader, value, next)) !== undefined;
    });
    const { reader, spec } = best ?? having[0] ?? {};
    const start = spec?.byName.get(name);
    return reader && start && placeOf(reader, descend(reader, start, rest));
  }
}

function serviceOf(reader: NodeReader, { byName }: Fields, name: string): Said | undefined {
  const list = contentOf(reader, byName.get("services")?.value);
  return isSeq<ParsedNode>(list) ? itemOf(reader, list.items, name) : undefined;
}

/** Returns the item of a list that has this name. */
function itemOf(reader: NodeReader, items: readonly ParsedNode[], name: string): Said | undefined {
  for (const item of items) {
    if (!isMap(contentOf(reader, item))) continue;
    const content = contentOf(reader, step(reader, item, "name")?.value);
    if (isScalar(content) && String(content.value) === name) return { key: item, value: item };
  }
  return undefined;
}

/** Follows the path as far as its names are written. */
function descend(reader: NodeReader, start: Said, path: readonly string[]): ParsedNode {
  let said = start;
  for (const name of path) {
    const next = said.value && step(reader, said.value, name);
    if (next === undefined) break;
    said = next;
  }
  return said.key;
}

function step(reader: NodeReader, node: ParsedNode, name: string): Said | undefined {
  const content = contentOf(reader, node);
  if (isSeq<ParsedNode>(content)) {
    if (!/^[0-9]{1,6}$/.test(name)) return itemOf(reader, content.items, name);
    const item = content.items[Number(name)];
    return item && { key: item, value: item };
  }
  if (!isMap<ParsedNode, ParsedNode | null>(content)) return undefined;
  const pair = content.items.find(({ key }) => isScalar(key) && key.value === name);
  if (pair !== undefined) return { key: pair.key, value: pair.value ?? undefined };
  return merged(reader, content.items, name);
}

/** Returns what `<<` adds to a map. */
function merged(
  reader: NodeReader,
  items: readonly { readonly key: ParsedNode; readonly value: ParsedNode | null }[],
  name: string,
): Said | undefined {
  const merge = items.find(({ key }) => isScalar(key) && key.value === "<<")?.value;
  const content = contentOf(reader, merge ?? undefined);
  const maps = isSeq<ParsedNode>(content) ? content.items : merge ? [merge] : [];
  for (const map of maps) {
    const found = step(reader, map, name);
    if (found !== undefined) return found;
  }
  return undefined;
}

function contentOf(reader: NodeReader, node: ParsedNode | undefined): ParsedNode | undefined {
  return node && reader.contentAt(node);
}

function placeOf({ source }: NodeReader, node: ParsedNode): PolicyPlace {
  const [start, end] = node.range;
  const range = { start, end: isScalar(node) ? end : start + 1 };
  const { text, start: caretStart, length } = source.excerpt(range);
  const caret = { start: caretStart, length };
  return { file: source.file, ...source.position(start), excerpt: text, caret };
}
