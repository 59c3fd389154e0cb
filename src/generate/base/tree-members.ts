import { Noted, type Tree, type TreeMap } from "./document.js";
import { isTreeList } from "./plain-tree.js";

/** Returns a value without the comments right before it. */
export function unnoted(tree: Tree): Exclude<Tree, Noted> {
  let at = tree;
  while (at instanceof Noted) at = at.value;
  return at;
}

/** Returns a value as a map. Undefined if it is not a map. */
export function asMap(tree: Tree | undefined): TreeMap | undefined {
  if (tree === undefined) return undefined;
  const plain = unnoted(tree);
  return typeof plain === "object" && !isTreeList(plain) ? plain : undefined;
}

/** Returns what a map holds under a name, without the comments before it. */
export function memberOf(tree: Tree, name: string): Exclude<Tree, Noted> | undefined {
  const member = asMap(tree)?.[name];
  return member === undefined ? undefined : unnoted(member);
}

/** Returns the items of a list. Empty if it is not a list. */
export function itemsOf(tree: Tree | undefined): readonly Tree[] {
  if (tree === undefined) return [];
  const plain = unnoted(tree);
  return isTreeList(plain) ? plain : [];
}

/** Returns a map with one of its values replaced. The comments before the map stay. */
export function withMember(tree: Tree, name: string, value: Tree): Tree {
  if (tree instanceof Noted) return new Noted(tree.comment, withMember(tree.value, name, value));
  const map = asMap(tree);
  return map === undefined ? tree : { ...map, [name]: value };
}
