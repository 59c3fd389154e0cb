import { Noted, type Tree } from "./document.js";

/** A document's value without comments, as a parser of the rendered text returns it. */
export type PlainValue = string | number | boolean | readonly PlainValue[] | PlainMap;

/** A map of plain values. Names keep the order in which they were written. */
export interface PlainMap {
  readonly [name: string]: PlainValue;
}

/** Removes comments, and names whose value is undefined. */
export function plainTree(tree: Tree): PlainValue {
  if (tree instanceof Noted) return plainTree(tree.value);
  if (isTreeList(tree)) return tree.map(plainTree);
  if (typeof tree !== "object") return tree;
  const plain: Record<string, PlainValue> = {};
  for (const name of Object.keys(tree)) {
    const value = tree[name];
    if (value === undefined) continue;
    // An assignment would set the prototype instead of a name.
    if (name === "__proto__") Object.defineProperty(plain, name, ownValue(plainTree(value)));
    else plain[name] = plainTree(value);
  }
  return plain;
}

function ownValue(value: PlainValue): PropertyDescriptor {
  return { value, configurable: true, enumerable: true, writable: true };
}

/** Reports whether a tree is a list. `Array.isArray` does not narrow read-only lists. */
export function isTreeList(tree: Tree): tree is readonly Tree[] {
  return Array.isArray(tree);
}

/** Reports whether a plain value is a map. */
export function isPlainMap(value: PlainValue | undefined): value is PlainMap {
  return typeof value === "object" && !Array.isArray(value);
}

/** Reports whether a plain value is a list. */
export function isPlainList(value: PlainValue | undefined): value is readonly PlainValue[] {
  return Array.isArray(value);
}

/** Returns the map that a map holds under a name, or an empty map if there is none. */
export function mapIn(map: PlainMap, name: string): PlainMap {
  const value = Object.hasOwn(map, name) ? map[name] : undefined;
  return isPlainMap(value) ? value : {};
}
