import { Noted, type Tree } from "./document.js";

/** A document's value without comments, as a reader of its text gets it. */
export type PlainValue = string | number | boolean | readonly PlainValue[] | PlainMap;

/** A map of plain values, in the order in which its names were written. */
export interface PlainMap {
  readonly [name: string]: PlainValue;
}

/** Takes the comments away, and the names whose value is undefined. */
export function plainTree(tree: Tree): PlainValue {
  if (tree instanceof Noted) return plainTree(tree.value);
  if (isTreeList(tree)) return tree.map(plainTree);
  if (typeof tree !== "object") return tree;
  const plain: Record<string, PlainValue> = {};
  for (const name of Object.keys(tree)) {
    const value = tree[name];
    if (value === undefined) continue;
    // An assignment does not take it for a name.
    if (name === "__proto__") Object.defineProperty(plain, name, ownValue(plainTree(value)));
    else plain[name] = plainTree(value);
  }
  return plain;
}

function ownValue(value: PlainValue): PropertyDescriptor {
  return { value, configurable: true, enumerable: true, writable: true };
}

/** Whether a tree is a list; `Array.isArray` does not know lists that are read only. */
export function isTreeList(tree: Tree): tree is readonly Tree[] {
  return Array.isArray(tree);
}

/** Whether a plain value is a map. */
export function isPlainMap(value: PlainValue | undefined): value is PlainMap {
  return typeof value === "object" && !Array.isArray(value);
}

/** Whether a plain value is a list. */
export function isPlainList(value: PlainValue | undefined): value is readonly PlainValue[] {
  return Array.isArray(value);
}

/** What a map holds under a name, where that is a map; else an empty one. */
export function mapIn(map: PlainMap, name: string): PlainMap {
  const value = Object.hasOwn(map, name) ? map[name] : undefined;
  return isPlainMap(value) ? value : {};
}
